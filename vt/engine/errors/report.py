"""An error that a user can mend is one line: what, where, and what to do."""

import logging
import os
import select
import sys
import traceback as tracebacks
from collections.abc import Iterator
from contextlib import contextmanager

from vt._libraries import import_on_demand, importing

# A tool that succeeds needs none of what describes an error, and that takes seconds to import.
__getattr__ = import_on_demand(__name__, describe='vt.engine.errors.messages:describe')


@contextmanager
def one_line_errors(where: str, traceback: bool = False) -> Iterator[None]:
    """Turn any error into one line on standard error and exit code 1.

    The whole traceback goes into the log of the run, if it has begun one. With several processes each names its rank,
    and leaves without waiting for the others.

    Args:
        where: what the user was working with, usually the config's path; it begins the line.
        traceback: let the error through, with its whole traceback.
    """
    logging.raiseExceptions = traceback  # a log whose terminal has gone is no reason to print a traceback a line
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError as error:
        if error.filename is None and _is_closed(sys.stdout.fileno()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains while it ends
            sys.exit(1)
        _leave(where, error, traceback)
    except Exception as error:
        if _was_interrupted(error):
            sys.exit(130)
        _leave(where, error, traceback)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what a library turned into an error of its own, as mmengine does while it formats a config."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_closed(pipe: int) -> bool:
    """Whether nobody reads what is written to a pipe."""
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _leave(where: str, error: Exception, traceback: bool) -> None:
    """Report an error where someone will look for it, and end the process."""
    from vt.engine.processes.failures import follows_another

    followed = follows_another(error)
    if not followed:
        _tell_torchrun(error)
    if traceback and not _has_peers():
        raise error
    if traceback:
        tracebacks.print_exception(error)
    with importing():
        from .messages import describe
    log = _log(error)
    hint = f'the whole traceback: {log}' if log else '--traceback shows where'
    line = 'stopped because another process failed: its own line says why' if followed else describe(error)
    print(f'error: {_rank()}{where}: {line} ({hint})', file=sys.stderr)
    if _has_peers():
        # An end in good order would wait for processes that wait for this one.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(1)


def _rank() -> str:
    if not _has_peers() and os.environ.get('WORLD_SIZE', '1') == '1':
        return ''
    return f'rank {sys.modules["torch"].distributed.get_rank() if _has_peers() else os.environ.get("RANK", "?")}: '


def _has_peers() -> bool:
    """Whether this process has met others."""
    distributed = sys.modules.get('torch.distributed')
    return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1


def _tell_torchrun(error: Exception) -> None:
    """Write the error where torchrun reads it for its report."""
    if os.environ.get('TORCHELASTIC_ERROR_FILE'):
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)


def _log(error: Exception) -> str | None:
    """Write the whole traceback to the log that the run has begun, not to the console; return the file's name."""
    from mmengine.logging import MMLogger

    text = ''.join(tracebacks.format_exception(error))
    logger = next(reversed(MMLogger._instance_dict.values()), None)
    files = [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)] if logger else []
    for handler in files:
        handler.emit(logging.LogRecord('mmengine', logging.ERROR, __file__, 0, text, None, None))
    return os.path.relpath(files[0].baseFilename) if files else None
