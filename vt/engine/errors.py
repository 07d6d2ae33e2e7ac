"""User errors are reported in one line, unexpected ones show their traceback. Both end with exit code 1."""

import errno
import logging
import os
import sys
import traceback as tracebacks
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from vt.errors import UserError
from vt.untrusted_text import printable

# What the system says of a file, and what to do about it.
SYSTEM = {
    errno.ENOENT: 'there is no {}: put it there, or correct its path (data_root for a data set)',
    errno.EACCES: 'no permission for {}: change its rights, or name another path',
    errno.EPERM: 'no permission for {}: change its rights, or name another path',
    errno.EROFS: '{} lies on a file system that is read-only: name another path (--work-dir for what a run writes)',
    errno.ENOSPC: 'no space is left to write {}: free some, or name another path (--work-dir for what a run writes)',
    errno.EDQUOT: 'the quota leaves no space to write {}: free some, or name another path',
    errno.EFBIG: 'no space is left to write {}, by the limit on the size of files (ulimit -f)',
    errno.EEXIST: '{} is a file where a folder is needed: remove it, or name another folder',
    errno.ENOTDIR: 'on the way to {} is a file where a folder is needed: correct the path',
    errno.EISDIR: '{} is a folder where a file is needed: correct the path',
    errno.EMFILE: 'too many files are open: raise the limit (ulimit -n 65536), or lower num_workers',
    errno.EADDRINUSE: 'the port is in use: set PORT (MASTER_PORT without tools/dist_*.sh) to a free one',
}
OUT_OF_MEMORY = (
    'out of memory: lower batch_size of the dataloader (and raise optim_wrapper.accumulative_counts to match), or the '
    'size of the images or of the model; or try --amp, or with_cp=True for the backbone'
)
FILES = ('img_path', 'seg_map_path')  # of a sample


class SampleError(UserError):
    """A sample of a data set can't be loaded; its message names the file."""


@contextmanager
def naming_sample(dataset: Any, index: int) -> Iterator[None]:
    """Name the files of a sample in whatever error loading it raises, as a :class:`SampleError`."""
    try:
        yield
    except SampleError:
        raise
    except Exception as error:
        name = ' or '.join(files_of(dataset, index)) or f'sample {index} of {type(dataset).__name__}'
        raise SampleError(f'{name} cannot be loaded: {describe(error) or in_one_line(error)}') from error


def files_of(dataset: Any, index: int) -> list[str]:
    """The files of a sample, as far as its data set says."""
    with suppress(Exception):  # the annotation itself is broken, or there is none
        info = dataset.get_data_info(index)
        return [str(info[key]) for key in FILES if info.get(key)]
    return []


def in_one_line(error: BaseException) -> str:
    """An error's type and text; the type of an error that is meant for people says nothing."""
    text = ' '.join(str(error).split())
    return text if isinstance(error, (UserError, OSError)) and text else f'{type(error).__name__}: {text}'


def describe(error: BaseException) -> str | None:
    """The line for a user error; None for an unexpected one."""
    if isinstance(error, UserError):
        # One of a worker process comes with that process's traceback, which ends with the line.
        return in_one_line(error).rpartition(f'{type(error).__module__}.{type(error).__qualname__}: ')[2]
    if isinstance(error, OSError) and error.errno in SYSTEM and len(error.args) > 1:
        return SYSTEM[error.errno].format(error.filename or 'a file of this run')
    torch = sys.modules.get('torch')
    if isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError)):
        return OUT_OF_MEMORY
    return None


@contextmanager
def one_line_errors(where: str, traceback: bool = False) -> Iterator[None]:
    """Print a user error as one line on standard error, any other one with its traceback; exit with 1.

    The line begins with what the user was working with (``where``), usually the config's path. The traceback goes into
    the log of the run too, if it has begun one. With several processes each names its rank, and leaves without waiting
    for the others. ``traceback`` asks for that of every error.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads; Python would complain at its end
        sys.exit(1)
    except Exception as error:
        if _was_interrupted(error):
            sys.exit(130)
        _leave(where, error, traceback)


def traceback_of(error: BaseException) -> str:
    """A traceback whose lines a terminal shows and doesn't obey, whatever names of files the error repeats."""
    return '\n'.join(map(printable, ''.join(tracebacks.format_exception(error)).split('\n')))


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what a library turned into an error of its own, as mmengine does while it formats a config."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _leave(where: str, error: Exception, traceback: bool) -> None:
    """Report an error where someone will look for it, and end the process."""
    line, log = describe(error), _log(error)
    if _has_peers() and follows_another(error):
        line = 'stopped because another process failed: its own line says why'
    elif os.environ.get('TORCHELASTIC_ERROR_FILE'):  # torchrun reads it for its report
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)
    if line is None or traceback:
        print(traceback_of(error), file=sys.stderr)
    if line is not None:
        rank = f'rank {os.environ.get("RANK", "?")}: ' if os.environ.get('WORLD_SIZE', '1') != '1' else ''
        hint = f'the whole traceback: {log}' if log else '--traceback shows where'
        print(printable(f'error: {rank}{where}: {line} ({hint})'), file=sys.stderr)
    if _has_peers():
        # An end in good order would wait for processes that wait for this one.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(1)


def follows_another(error: Exception) -> bool:
    """Whether this process fails because another one had failed before; each that fails asks this once.

    The first to ask writes its rank down where the processes met. If that place is gone, so is the main process, which
    was before this one. What breaks with a connection is a ``RuntimeError``; any other error is this process's own.
    """
    from torch import distributed

    rank = str(distributed.get_rank())
    try:
        first = distributed.group.WORLD.get_group_store().compare_set('first_failure', '', rank).decode()
    except distributed.DistError:
        first = None
    return first != rank and isinstance(error, RuntimeError)


def _has_peers() -> bool:
    """Whether this process has met others."""
    distributed = sys.modules.get('torch.distributed')
    return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1


def _log(error: Exception) -> str | None:
    """Write the traceback to the log that the run has begun, not to the console; return the file's name."""
    from mmengine.logging import MMLogger

    handlers = MMLogger.get_current_instance().handlers
    files = [handler for handler in handlers if isinstance(handler, logging.FileHandler)]
    for handler in files:
        handler.emit(logging.LogRecord('mmengine', logging.ERROR, __file__, 0, traceback_of(error), None, None))
    return os.path.relpath(files[0].baseFilename) if files else None
