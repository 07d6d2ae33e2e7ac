"""Files of a folder and of the folders in it, also of linked ones."""

import os
from collections.abc import Iterator


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
