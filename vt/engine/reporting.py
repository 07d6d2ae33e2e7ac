"""Report user errors in one line and unexpected errors with their traceback; both end with exit code 1."""

import errno
import logging
import os
import re
import signal
import sys
import sysconfig
import traceback as tracebacks
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vt.errors import UserError
from vt.files import PACKAGE
from vt.hints import as_typed
from vt.untrusted_text import printable

# Errors of the operating system about a file, and what to do about them.
SYSTEM = {
    errno.ENOENT: 'there is no {}: put it there, or correct its path (data_root for a data set)',
    errno.EACCES: 'permission denied for {}: change its permissions, or choose another path',
    errno.EROFS: '{} is on a read-only file system: choose another path (--work-dir for the files of a run)',
    errno.ENOSPC: 'no disk space is left for {}: free some, or choose another path (--work-dir for the files of a run)',
    errno.EEXIST: '{} is a file where a folder is needed: remove it, or choose another folder',
    errno.EISDIR: '{} is a folder where a file is needed: remove it, or choose another path',
    errno.ENOTDIR: 'a folder in the path {} is a file: correct the path',
    errno.EMFILE: 'too many files are open: raise the limit (ulimit -n 65536), or lower num_workers',
    errno.EADDRINUSE: 'the port is in use: set MASTER_PORT to a free one',
}
OUT_OF_MEMORY = (
    'out of memory: lower batch_size of the dataloader (and raise optim_wrapper.accumulative_counts to match), use '
    'smaller images or a smaller model, --amp, or with_cp=True for the backbone'
)
FILES = ('img_path', 'seg_map_path')  # keys of a sample
STANDARD, LIBRARIES = sysconfig.get_path('stdlib'), {'site-packages', 'dist-packages'}  # folders of others' code
LIBRARY = re.compile(r'([^\s/:]+\.so[.\d]*): cannot open')  # the system's message about a missing library
LOST = ('closed by peer', 'reset by peer', 'Broken pipe')  # the system's messages about a lost connection


class SampleError(UserError):
    """A sample of a data set cannot be loaded; the message names its file."""


class PartError(UserError):
    """A part of a run cannot be built or fails in the dry run; the cause is the original error."""


@contextmanager
def naming_sample(dataset: Any, index: int) -> Iterator[None]:
    """Convert any error of loading a sample to a :class:`SampleError` that names the files of the sample."""
    try:
        yield
    except SampleError:
        raise
    except Exception as error:
        from vt.datasets.bands import why_unread  # OpenCV and Pillow, which few commands need

        files = files_of(dataset, index)
        name = ' or '.join(files) or f'sample {index} of {type(dataset).__name__}'
        step = next((f'{type(each).__name__}: ' for each in _owners(error) if hasattr(type(each), 'transform')), '')
        if files and step.startswith('LoadImageFromFile') and (why := why_unread(files[0])):
            raise SampleError(f'{files[0]} {why}') from error
        reason = describe(error) or step + in_one_line(error) + _own_line(error)
        hint = f'; {as_typed("vt check-dataset")} finds all such files' if step.startswith('Load') else ''
        raise SampleError(f'{name} cannot be loaded: {reason}{hint}') from error


@contextmanager
def error_context(doing: str, cfg: Any = None, model: Any = None, unless: Callable[[], bool] = bool) -> Iterator[None]:
    """Convert an error that is not a user error to a :class:`PartError` of one line.

    The line says what the run was doing, in which part it failed, the cause, and where in the user's own code: "while
    training on the first batch, in model.head.fc (Own): NameError: ... (own.py, line 12)".

    Args:
        doing: what the block does; continues "while".
        cfg: config as a dict, in which parts that cannot be built are looked up.
        model: the model, whose modules are named by their paths.
        unless: called after an error; if it returns True, the error is not converted.
    """
    try:
        yield
    except Exception as error:
        if describe(error) is not None or unless():
            raise
        cause = in_one_line(error.__cause__ or error) + _own_line(error)
        raise PartError(f'while {doing}{_name_part(error, cfg, model)}: {cause}') from error


def _name_part(error: BaseException, cfg: Any, model: Any) -> str:
    """Return the innermost part in whose code an error was raised, for a message; ``''`` if there is none."""
    modules = {} if model is None else {id(part): name for name, part in model.named_modules()}
    parts, owners = [*_parts_of(cfg, '')], list(_owners(error))
    built = [owner for owner in owners if isinstance(owner, dict)]
    for owner in owners:
        if name := modules.get(id(owner)):
            return f', in model.{name} ({type(owner).__name__})'
        if hasattr(type(owner), 'compute_metrics'):
            return f', in {type(owner).__name__}'
    for owner in built:
        if path := next((path for path, part in parts if _is_of(owner, part)), None):
            return f', in {path} ({_name_type(owner)})'
    return f', in {_name_type(built[0])}' if built else ''


def _own_line(error: BaseException | None) -> str:
    """Return file and line of the innermost code that neither VT nor a library has, for a message; ``''`` if none."""
    if error is None:
        return ''
    for frame, line in reversed([*tracebacks.walk_tb(error.__traceback__)]):
        path = Path(frame.f_code.co_filename)
        is_library = any(map(path.is_relative_to, (PACKAGE, STANDARD))) or LIBRARIES & {*path.parts}
        if path.is_file() and not is_library:
            return f' ({os.path.relpath(path)}, line {line})'
    return _own_line(error.__cause__ or error.__context__)


def _name_type(part: dict) -> str:
    return getattr(part['type'], '__name__', part['type'])


def _is_of(built: dict, part: dict) -> bool:
    """Return whether a config that was built is a part of a config, to which builders add arguments."""
    return all(name in built and built[name] == value for name, value in part.items())


def _owners(error: BaseException) -> Iterator[Any]:
    """Yield objects in whose methods an error was raised, and configs of parts that were built, innermost first."""
    frames = [frame for frame, _ in tracebacks.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        names = frame.f_locals
        if frame.f_code.co_name == 'build_from_cfg' and isinstance(names.get('cfg'), dict) and 'type' in names['cfg']:
            yield names['cfg']
        elif 'self' in names:
            yield names['self']


def _parts_of(value: Any, path: str) -> Iterator[tuple[str, dict]]:
    """Yield path and config of each part of a config."""
    if isinstance(value, dict) and 'type' in value:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, item in items:
        yield from _parts_of(item, f'{path}.{key}'.strip('.'))


def files_of(dataset: Any, index: int) -> list[str]:
    """Return the files of a sample that its data set names."""
    with suppress(Exception):  # the annotation is missing or broken
        info = dataset.get_data_info(index)
        return [str(info[key]) for key in FILES if info.get(key)]
    return []


def in_one_line(error: BaseException) -> str:
    """Return type and text of an error in one line; the type is left out of errors written for users."""
    text = ' '.join(str(error).split())
    return text if isinstance(error, (UserError, OSError)) and text else f'{type(error).__name__}: {text}'


def describe(error: BaseException) -> str | None:
    """Return the message of a user error in one line; None for an unexpected error."""
    if isinstance(error, UserError):
        # An error of a worker process contains its traceback, which ends with the message.
        return in_one_line(error).rpartition(f'{type(error).__module__}.{type(error).__qualname__}: ')[2]
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return error.strerror  # such as of tempfile, which names the folders that it has tried
    if isinstance(error, FileNotFoundError) and _is_of_the_run(error.filename):
        return f'{error.filename} was removed during the run, or a folder above it: do not change the work directory'
    if isinstance(error, OSError) and error.errno in SYSTEM and len(error.args) > 1:
        return SYSTEM[error.errno].format(error.filename or 'a file of this run')
    if isinstance(error, OSError) and error.filename is not None:
        return f'{error.strerror}: {error.filename}'
    torch = sys.modules.get('torch')
    if isinstance(error, MemoryError) or (torch is not None and isinstance(error, torch.OutOfMemoryError)):
        return OUT_OF_MEMORY
    if isinstance(error, ImportError) and (lacks := LIBRARY.search(str(error))):
        for_opencv = 'for OpenCV: apt-get install libgl1 libglib2.0-0, or pip install opencv-python-headless instead'
        return f'the system library {lacks[1]} is missing: install the package that contains it ({for_opencv})'
    if isinstance(error, ImportError):
        return f'{in_one_line(error)}: install the missing package, or remove the part of the config that needs it'
    return None


@contextmanager
def one_line_errors(where: str, traceback: bool = False) -> Iterator[None]:
    """Print user errors as one line on standard error and other errors with their traceback; exit with code 1.

    The line begins with ``where``, usually the path of the config; ``traceback`` prints that of user errors, too. It is
    also written to the log of the run, if there is one. With several processes, each names its rank and exits without
    waiting for the others. Ctrl-C exits with code 130 and one line.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would report the closed pipe at exit
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:
        if _was_interrupted(error):
            _stop(where)
        _leave(where, error, traceback)


def traceback_of(error: BaseException) -> str:
    """Return a traceback without control characters, which file names in an error could contain."""
    return '\n'.join(map(printable, ''.join(tracebacks.format_exception(error)).split('\n')))


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether an error stems from Ctrl-C; mmengine converts it when interrupted while formatting a config."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _stop(where: str) -> None:
    """End the process after Ctrl-C; a second one ends it at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.environ.get('RANK', '0') == '0':
        print(printable(f'{where}: stopped by Ctrl-C'), file=sys.stderr)
    _exit(130)


def _leave(where: str, error: Exception, traceback: bool) -> None:
    """Report an error on standard error, in the log and to torchrun, and end the process."""
    line, log = describe(error), _log(error)
    if _has_peers() and follows_another(error.__cause__ if isinstance(error, PartError) else error):
        line = 'stopped because another process failed: see the error of that process'
    elif os.environ.get('TORCHELASTIC_ERROR_FILE'):  # torchrun reads it for its report
        from torch.distributed.elastic.multiprocessing.errors import get_error_handler

        get_error_handler().record_exception(error)
    if line is None or traceback:
        print(traceback_of(error), file=sys.stderr)
    if line is not None:
        rank = f'rank {os.environ.get("RANK", "?")}: ' if os.environ.get('WORLD_SIZE', '1') != '1' else ''
        hint = f'full traceback: {log}' if log else '--traceback shows the traceback'
        print(printable(f'error: {rank}{where}: {line} ({hint})'), file=sys.stderr)
    _exit(1)


def _exit(code: int) -> None:
    if _has_peers():
        # A normal exit would wait for processes that wait for this one.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def follows_another(error: Exception) -> bool:
    """Return whether this process fails because another one failed first. Call it once in each process that fails.

    The first caller writes its rank to the store of the process group. If the store is gone, the main process failed
    first, and if a connection is lost without any rank there, another one was killed. Only a ``RuntimeError`` can be
    caused by a lost connection; other errors are this process's own.
    """
    from torch import distributed

    rank = str(distributed.get_rank())
    try:
        group: Any = distributed.group.WORLD
        first = group.get_group_store().compare_set('first_failure', '', rank).decode()
    except distributed.DistError:
        first = None
    is_lost = any(words in str(error) for words in LOST)
    return isinstance(error, RuntimeError) and (first != rank or is_lost)


def _has_peers() -> bool:
    """Return whether this process belongs to a group of several."""
    distributed = sys.modules.get('torch.distributed')
    return distributed is not None and distributed.is_initialized() and distributed.get_world_size() > 1


def _log(error: Exception) -> str | None:
    """Write the traceback to the log file of the run, if there is one; return its path."""
    files = _log_files()
    for handler in files:
        handler.emit(logging.LogRecord('mmengine', logging.ERROR, __file__, 0, traceback_of(error), None, None))
    return os.path.relpath(files[0].baseFilename) if files and os.path.exists(files[0].baseFilename) else None


def _log_files() -> list[logging.FileHandler]:
    from mmengine.logging import MMLogger

    handlers = MMLogger.get_current_instance().handlers
    return [handler for handler in handlers if isinstance(handler, logging.FileHandler)]


def _is_of_the_run(path: Any) -> bool:
    """Return whether a path is in the folder of the log, where a run alone writes."""
    folders = [os.path.dirname(handler.baseFilename) for handler in _log_files()]
    return any(os.path.abspath(str(path)).startswith(os.path.join(folder, '')) for folder in folders)
