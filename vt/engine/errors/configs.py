"""An error while a config is read names the config's file and line."""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.config import Config

MESSAGES = {
    RecursionError: 'it inherits itself by _base_: take the circle out',
    UnicodeDecodeError: 'it is not a text in UTF-8',
}
READERS = (Config._file2dict.__code__, Config._is_lazy_import.__code__)


@contextmanager
def naming_config(path: str) -> Iterator[None]:
    """Name the file and line in whatever error running a config raises.

    A config can inherit others; the one in which the error happened is named.

    Raises:
        ValueError: the config can't be read.
    """
    try:
        yield
    except MemoryError:
        raise
    except FileNotFoundError as error:
        missing = str(error.filename or error).removeprefix('file "').removesuffix('" does not exist')
        raise ValueError(f'{_below(path, error)}there is no {missing}: correct _base_ of the config') from error
    except Exception as error:
        raise ValueError(f'{_below(path, error)}{_say(error)}') from error


def _below(path: str, error: Exception) -> str:
    """The file, and the line where it is known, in which an error happened: the config or one that it inherits."""
    frames = list(traceback.walk_tb(error.__traceback__))
    reading = [frame.f_locals.get('filename') for frame, _ in frames if frame.f_code in READERS]
    files = [os.path.relpath(path)] + [os.path.relpath(name) for name in reading if os.path.exists(name)]
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame, number in frames:  # mmengine compiles a config under its own name
        if os.path.relpath(frame.f_code.co_filename) in files:
            line = number
    where = [files[-1]] if files[-1] != os.path.relpath(path) else []
    where += [f'line {line}'] if line is not None else []
    return ', '.join(where) + ': ' if where else ''


def _say(error: Exception) -> str:
    if type(error) in MESSAGES:
        return MESSAGES[type(error)]
    if isinstance(error, SyntaxError):
        return f'SyntaxError: {error.msg}'
    text = ' '.join(str(error.args[0] if len(error.args) == 1 else error).split())
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
