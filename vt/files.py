"""Write files atomically, find those of a folder, and read JSON files with checks."""

import codecs
import contextlib
import functools
import json
import math
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl: Any = None

from vt.errors import DamagedError, FileError, MissingFileError, UserError
from vt.untrusted_text import printable

PACKAGE = Path(__file__).parent
# Folder of configs/, tools/ and model-index.yml. OpenMMLab's libraries look for them in .mim of the package, where a
# checkout has links.
ROOT = PACKAGE.parent if (PACKAGE.parent / 'model-index.yml').is_file() else PACKAGE / '.mim'
START, PART = '.vt-', '.part'  # names of folders of unfinished files
MARK = 'in_use.lock'  # a file in them
NUMBER = int | float | None  # of JSON; NaN is None


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Replace a file or folder: provide a temporary path, which is synced and renamed to ``path`` after the block.

    The target of a symbolic link is replaced. The parent folder is created if needed.

    Raises:
        FileError: it could not be written; what exists is unchanged.
    """
    path = Path(os.path.realpath(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(path.parent) as folder:
            part = folder / path.name
            yield part
            _sync(part)
            part.replace(path)
    except OSError as error:
        before = '; the existing file is unchanged' if path.exists() else ''
        advice = 'free space there, correct its permissions, or choose another folder (--work-dir, --out)'
        raise FileError(f'{path} could not be written ({error.strerror or error}){before}: {advice}') from error
    with contextlib.suppress(OSError):  # some file systems cannot sync a folder
        _sync(path.parent)


@contextlib.contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Provide a new folder in another one, with a name of its own, which is removed after the block.

    A process that is killed leaves ``.vt-<random>.part``, which the next process that writes to ``parent`` removes,
    since its mark is not locked any more.
    """
    _remove_unfinished(parent, os.getpid())
    with contextlib.ExitStack() as ends:
        while True:
            folder = Path(tempfile.mkdtemp(prefix=START, suffix=PART, dir=parent))
            ends.callback(_remove, folder)
            with contextlib.suppress(FileNotFoundError):  # another process has taken it for one that a kill left
                mark = ends.enter_context((folder / MARK).open('w'))
                with contextlib.suppress(OSError, AttributeError):  # a file system without locks, or Windows
                    fcntl.flock(mark, fcntl.LOCK_EX)
                if (folder / MARK).exists():
                    break
        yield folder


@functools.cache  # once in a process, since a folder may hold many files
def _remove_unfinished(parent: Path, process: int) -> None:
    for folder in parent.glob(f'{START}*{PART}') if fcntl else ():
        with contextlib.suppress(OSError):
            folder.rmdir()  # empty: a process was killed here
        if folder.is_symlink() or not (folder / MARK).is_file():  # a pipe would be waited for
            continue
        with contextlib.suppress(OSError), (folder / MARK).open('r+') as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove an unfinished folder, its mark last, so that the next process can go on after a kill here."""
    with contextlib.suppress(OSError):
        for path in {*folder.iterdir()} - {folder / MARK}:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.rmtree(folder)


def write_atomically(path: str | os.PathLike, data: bytes | memoryview | str) -> None:
    """Write a file by :func:`atomic_write`, text as UTF-8; devices such as ``/dev/stdout`` are written directly."""
    data = data.encode() if isinstance(data, str) else data
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_bytes(data)
        return
    with atomic_write(path) as part:
        part.write_bytes(data)


def write_json(record: Any, out: str | os.PathLike, indent: int | None = 2) -> None:
    """Write a record as JSON, see :func:`as_plain`, to a file with any suffix, see :func:`write_atomically`."""
    write_atomically(out, json.dumps(as_plain(record), indent=indent))


def as_plain(value: Any) -> Any:
    """Convert a record for JSON: tensors and arrays to lists, NaN and infinity to None."""
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if hasattr(value, 'tolist'):
        return as_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_lines(path: str | os.PathLike) -> list[str]:
    """Return the lines of a text file in UTF-8 or UTF-16, without byte order mark and ends of lines.

    Raises:
        UserError: it has another encoding.
    """
    from mmengine import fileio  # a second, which `vt --help` does not wait for

    content = fileio.get(os.path.expanduser(path))
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode('utf-16' if is_utf16 else 'utf-8-sig').splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f'{path} is not UTF-8 text: save it in this encoding') from error


def read_names(path: str | os.PathLike) -> list[str]:
    """Return the names in a text file, one per line; blank lines are left out."""
    return [*filter(None, map(str.strip, read_lines(path)))]


def read_json(path: Path, hint: str, keys: Sequence[str] = (), shape: Any = object) -> Any:
    """Read a JSON file.

    Args:
        path: path of the file.
        hint: how to make the file; the end of error messages.
        keys: required keys of a dict; without any, the file may contain anything.
        shape: what its data must be, see :func:`check_shape`.

    Raises:
        MissingFileError: the file does not exist.
        FileError: it cannot be opened.
        UserError: it is damaged, or lacks a key.
    """
    with parse_errors(path, hint):
        if not path.exists():
            raise MissingFileError(f'there is no {path}; {hint}')
        content = json.loads(path.read_bytes())
        check_shape(content, dict if keys else object, 'content')
        if missing := [key for key in keys if key not in content]:
            raise UserError(f'{path} lacks {", ".join(missing)}; {hint}')
        check_shape(content, shape, 'content')
    return content


def check_shape(value: Any, shape: Any, where: str) -> None:
    """Raise a DamagedError if JSON data, named ``where``, have another shape, or an integer that no float can hold.

    A shape is a type or a union of types, ``[shape]`` of a list, or of a dict the shapes of values by their keys, with
    ``str`` for all other keys; keys may be missing.
    """
    kind = type(shape) if isinstance(shape, (dict, list)) else shape
    if not isinstance(value, kind) or (isinstance(value, int) and abs(value) > sys.float_info.max):
        raise DamagedError(f'{where} is {printable(repr(value), 80)}, not {getattr(kind, "__name__", kind)}')
    if isinstance(shape, list):
        for item in value:
            check_shape(item, shape[0], f'an item of {where}')
    elif isinstance(shape, dict):
        for key, item in value.items():
            check_shape(item, shape.get(key, shape.get(str, object)), f'{key} in {where}')


@contextlib.contextmanager
def parse_errors(source: str | os.PathLike, hint: str = '') -> Iterator[None]:
    """Parse an untrusted file or folder within the block, in which its data may cause any error.

    Args:
        source: the file or folder, which begins error messages.
        hint: what to do about a damaged one; the end of error messages.

    Raises:
        FileError: it cannot be read.
        DamagedError: its data cannot be parsed.
        UserError: another user error, with the name of the source; or it needs more memory than is available.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == 'OutOfMemoryError':  # of PyTorch, not needed here
            raise UserError(f'{source} needs more memory than is available') from error
        verbose = isinstance(error, UserError)
        if verbose and str(source) in str(error):
            raise
        if verbose and not isinstance(error, DamagedError):
            raise UserError(f'{source}: {error}') from error
        if isinstance(error, OSError):
            raise FileError(f'{source} could not be read ({error.strerror or error})') from error
        reason = printable(' '.join(f'{"" if verbose else f"{type(error).__name__}: "}{error}'.split()), 160)
        raise DamagedError(f'{source} is damaged: {reason}{hint and "; "}{hint}') from error


def file_in(folder: str | os.PathLike, name: str) -> Path:
    """Return the path of a file in an untrusted folder; a link that leads out of the folder is refused.

    Links of a snapshot in the cache of huggingface_hub lead to ``blobs``, in the same folder of a repository.

    Raises:
        UserError: it is a link out of the folder.
    """
    path, root = Path(folder, name), Path(os.path.realpath(folder))
    roots = [root, root.parents[1] / 'blobs'] if root.parent.name == 'snapshots' else [root]
    target = Path(os.path.realpath(path))
    if not any(target.is_relative_to(each) for each in roots):
        raise UserError(f'{path} links to a file outside its folder: copy the file into the folder')
    return path


def files_below(folder: str | os.PathLike, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the paths of all files below a folder, in alphabetical order, those of a folder before its folders'.

    Links to folders are followed, except to a folder that is already being read. A link to nothing is a file.

    Args:
        folder: path of the folder; of a missing one there are no files.
        above: real paths of the folders that are being read.

    Raises:
        OSError: a folder cannot be read.
    """
    here = os.path.realpath(folder)
    if here in above or not os.path.isdir(here):
        return
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    yield from (entry.path for entry in entries if not entry.is_dir())
    for entry in entries:
        if entry.is_dir():
            yield from files_below(entry.path, above | {here})


def list_suffixes(counts: Counter[str]) -> str:
    """Return how many files have each suffix, for a message."""
    return ', '.join(f'{number:,} {suffix or "without suffix"}' for suffix, number in counts.most_common()) or 'no file'


def _sync(path: Path) -> None:
    if fcntl is None and path.is_dir():
        return  # Windows opens no folders
    descriptor = os.open(path, os.O_RDONLY if fcntl else os.O_RDWR)  # Windows syncs only what can be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
