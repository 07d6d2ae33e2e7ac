"""Files that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from vt.errors import FileError

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
        with contextlib.suppress(OSError):
            part.unlink()
        before = '; what was there before is untouched' if path.exists() else ''
        advice = 'free space there, mend its permissions, or choose another folder (--work-dir, --out)'
        raise FileError(f'{path} could not be written ({error.strerror}){before}: {advice}') from error
    with contextlib.suppress(OSError):  # not every file system can
        _sync(path.parent)


def write_atomically(path: str | os.PathLike, data: bytes | str) -> None:
    """Write a file by :func:`replacing`; text as UTF-8. What is no file, such as ``/dev/stdout``, is written to."""
    path = Path(path)
    data = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with replacing(path) as part:
        part.write_bytes(data)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
