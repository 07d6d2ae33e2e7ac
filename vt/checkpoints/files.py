"""Files that are written whole or not at all, and a look at those that are not."""

import contextlib
import os
import zipfile
from pathlib import Path

from mmengine.fileio import LocalBackend, register_backend
from mmengine.fileio.io import backend_instances

NAMES_OF_STATES = ('epoch_*.pth', 'iter_*.pth', 'interrupted*.pth')  # best_*.pth lack the optimizer
POINTER = 'last_checkpoint'


def write_atomically(path: str | os.PathLike, data: bytes | str) -> None:
    """Write a file so that at every moment either the old one or the new one is there, whole.

    The data go to a file beside it, ``.<name>.part``, each process's own, which reaches the disk and is then renamed.
    A process that is killed meanwhile leaves that file; the next write to the same path replaces it.

    Args:
        path: the file; its folder is made if it is not there.
        data: what it shall hold; text as UTF-8.

    Raises:
        OSError: it could not be written, in one line. What was there before is untouched.
    """
    path = Path(os.path.realpath(path))  # a link stays one
    data = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_bytes(data)
        return
    rank = int(os.environ.get('RANK') or 0)  # all processes of a run may write one file, as mmengine's LoggerHook does
    part = path.with_name(f'.{path.name}{f".{rank}" if rank else ""}.part')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open('wb') as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise _unwritten(path, error) from error
    _sync_folder(path.parent)


def _unwritten(path: Path, error: OSError) -> OSError:
    before = '; what was there before is untouched' if path.exists() else ''
    described = type(error)(
        f'{path} could not be written ({error.strerror}){before}: free space there, mend its permissions, '
        'or choose another folder (--work-dir, --out)'
    )
    described.errno = error.errno
    return described


def _sync_folder(folder: Path) -> None:
    """Bring a new name to the disk; not every file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class AtomicLocalBackend(LocalBackend):
    """mmengine's backend for local files, whose files are written by :func:`write_atomically`."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        write_atomically(filepath, obj)

    def put_text(self, obj: str, filepath: str | Path, encoding: str = 'utf-8') -> None:
        write_atomically(filepath, obj.encode(encoding))


def install_backend() -> None:
    """Make mmengine write all its local files by :class:`AtomicLocalBackend`."""
    register_backend('local', AtomicLocalBackend, force=True, prefixes='')
    backend_instances.clear()  # those made before


def find_damage(path: str | Path) -> str | None:
    """Why a checkpoint can't be used, in a few words; None if it is whole.

    Every byte of an archive that ``torch.save`` writes is compared with its checksum, which PyTorch itself does not do.
    Files of other kinds have none: of safetensors the lengths are compared, and the content with the digits that a
    published file has in its name; older pickles are read.
    """
    from .loading import read_safely
    from .refusal import explain, may_be_trusted

    path = Path(path)
    try:
        damage = find_visible_damage(path)
        if damage is None:
            read_safely(path, map_location='meta')
    except OSError as error:
        return f'it could not be read ({error.strerror or error})'
    except Exception as error:
        return None if may_be_trusted(error) and _is_archive(path) else explain(error)
    return damage


def find_visible_damage(path: Path) -> str | None:
    """As :func:`find_damage`, as far as it shows without unpickling."""
    if not path.is_file():
        return 'it is not there'
    with path.open('rb') as file:
        start = file.read(4)
    if not start:
        return 'it is empty'
    if start == bytes(4):  # what a crash of the machine may leave
        return 'it is no checkpoint: it begins with zeros'
    return _find_archive_damage(path) if _is_archive(path) else None


def _is_archive(path: Path) -> bool:
    with path.open('rb') as file:
        return file.read(4) == b'PK\x03\x04' and path.suffix != '.safetensors'


def _find_archive_damage(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            if not any(name.endswith('data.pkl') for name in archive.namelist()):
                return 'it is an archive, but none of torch.save'
            damaged = archive.testzip()
    except zipfile.BadZipFile as error:
        return f'it is cut off or changed ({error})'
    except Exception as error:  # a changed directory leads anywhere
        return f'it is changed ({type(error).__name__}: {error})'
    return f'its part {damaged} differs from its checksum' if damaged else None


def find_newest_checkpoint(folder: str | Path) -> tuple[Path | None, list[tuple[Path, str]]]:
    """The newest checkpoint of a work directory that is whole and that training can go on from.

    It is the one that ``last_checkpoint`` names, or else, of ``epoch_*.pth``, ``iter_*.pth`` and ``interrupted*.pth``
    beside it, the whole one of the highest iteration. A folder may have been moved: names are looked for in it first.

    Args:
        folder: the work directory.

    Returns:
        Its path, None if there is none, and those that were passed over, each with what is wrong with it.
    """
    folder = Path(folder)
    named = _named_checkpoint(folder)
    damaged: list[tuple[Path, str]] = []
    if named is not None and _passes(named, damaged):
        return named, damaged
    folders = {folder, named.parent if named is not None else folder}
    paths = {path for place in folders for name in NAMES_OF_STATES for path in place.glob(name)} - {named}
    positions = {path: _read_position(path)[0] for path in paths}
    for path in sorted(paths, key=lambda path: (positions[path], path.stat().st_mtime), reverse=True):
        if _passes(path, damaged):
            return path, damaged
    return None, damaged


def _named_checkpoint(folder: Path) -> Path | None:
    """The file that ``last_checkpoint`` names, whether it is there or not."""
    try:
        name = (folder / POINTER).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not name or '\0' in name:
        return None
    beside = folder / Path(name).name
    return Path(name) if not beside.is_file() and Path(name).is_file() else beside


def _passes(path: Path, damaged: list[tuple[Path, str]]) -> bool:
    """Whether training can go on from a file; otherwise it joins ``damaged``."""
    reason = find_damage(path) or _read_position(path)[1]
    if reason is not None:
        damaged.append((path, reason))
    return reason is None


def _read_position(path: Path) -> tuple[int, str | None]:
    """The iteration that a checkpoint was written at, or -1 and why it says none; its weights are not read."""
    from .loading import read_safely
    from .refusal import explain
    from .weights import has_place_in_training

    try:
        checkpoint = read_safely(path, map_location='meta')
    except Exception as error:
        return -1, explain(error)
    if not has_place_in_training(checkpoint):
        return -1, 'it holds weights alone'
    return checkpoint['meta']['iter'], None
