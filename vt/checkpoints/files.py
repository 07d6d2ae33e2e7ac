"""Files that are written whole or not at all, and what JSON files hold, which may be damaged all the same."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vt.errors import FileError, MissingFileError, UserError
from vt.untrusted_text import printable

POINTER = 'last_checkpoint'


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give a path to write to, beside ``path``; at the end of the block that file reaches the disk and takes the name.

    At every moment either the old file or the new one is there, whole. A process that is killed meanwhile leaves
    ``.<name>.part``; the next write to the same path replaces it. The folder is made if it is not there.

    Raises:
        FileError: it could not be written. What was there before is untouched.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    part = path.with_name(f'.{path.name}.part')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        _sync(part)
        part.replace(path)
    except OSError as error:
        before = '; what was there before is untouched' if path.exists() else ''
        advice = 'free space there, correct its permissions, or choose another folder (--work-dir, --out)'
        raise FileError(f'{path} could not be written ({error.strerror or error}){before}: {advice}') from error
    finally:
        with contextlib.suppress(OSError):  # it has taken the name, or its folder is not there
            part.unlink()
    with contextlib.suppress(OSError):  # not every file system can
        _sync(path.parent)


def write_atomically(path: str | os.PathLike, data: bytes | memoryview | str) -> None:
    """Write a file by :func:`replacing`; text as UTF-8. What is no file, such as ``/dev/stdout``, is written to."""
    path = Path(path)
    data = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with replacing(path) as part:
        part.write_bytes(data)


def read_json(
    path: Path, hint: str, kind: type | tuple[type, ...] = dict, keys: Sequence[str] = (), most: int | None = None
) -> Any:
    """What a JSON file holds.

    Args:
        path: of the file.
        hint: how to make it; it ends the errors.
        kind: what it must hold.
        keys: of a dict, those that must be there.
        most: bytes that it may have.

    Raises:
        MissingFileError: it is not there.
        FileError: it can't be opened.
        UserError: it is damaged, too large, or holds something else.
    """
    if not path.is_file():
        raise MissingFileError(f'there is no {path}; {hint}')
    size = path.stat().st_size
    if most is not None and size > most:
        raise UserError(f'{path} has {size:,} bytes, more than the {most:,} that are read; {hint}')
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise FileError(f'{path} could not be read ({error.strerror})') from error
    except RecursionError as error:
        raise UserError(f'{path} is nested too deeply; {hint}') from error
    except ValueError as error:
        what = f'is damaged, or no JSON ({printable(error, 80)})' if size else 'is empty'
        raise UserError(f'{path} {what}; {hint}') from error
    if not isinstance(content, kind):
        raise UserError(f'{path} holds a {type(content).__name__}, not what it should; {hint}')
    if missing := [key for key in keys if key not in content]:
        raise UserError(f'{path} lacks {", ".join(missing)}; {hint}')
    return content


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
