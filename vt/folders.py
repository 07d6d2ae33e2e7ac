"""Files of a folder and of the folders in it, also of linked ones, and files of similar names."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from .untrusted_text import composed, folded


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


def find_similar(path: str | os.PathLike) -> str:
    """Return advice that names the file that a missing one may be: its names differ in case or Unicode normalisation.

    It begins with a semicolon; without such a file it is ``''``.
    """
    found = None
    with suppress(OSError):  # a folder that cannot be read
        found = _find_similar(Path(path))
    if found is None:
        return ''
    is_case = composed(str(found)) != composed(str(path))
    return f'; there is {found if is_case else ascii(found.name)[1:-1]}: write both alike (case, Unicode NFC)'


def _find_similar(path: Path) -> Path | None:
    folder = path.parent if path.parent.is_dir() else _find_similar(path.parent)
    name = _names(folder, folder.stat().st_mtime_ns).get(folded(path.name)) if folder else None
    return folder / name if folder and name else None


@lru_cache(maxsize=16)
def _names(folder: Path, changed: int) -> dict[str, str]:
    """Return the names in a folder, which changed last at this time, by their folded form."""
    return {folded(name): name for name in os.listdir(folder)}
