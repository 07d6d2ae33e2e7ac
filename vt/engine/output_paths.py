"""Choose distinct output paths for many inputs, all inside one folder."""

import os
from collections.abc import Mapping
from pathlib import Path

from vt.untrusted_text import folded, printable

NAME_BYTES, PATH_BYTES = 200, 1000  # of a name and of a relative path; file systems allow 255 and 4096


def distinct_paths(wished: Mapping[str, Path], suffix: str = '.png') -> dict[str, Path]:
    """Return a relative path for the output of each input, as wished, with a suffix.

    Parent directories (``..``) and control characters are removed, and long names are shortened. Paths that would be
    the same file, also on file systems that ignore case, get ``-2``, ``-3`` and so on from the second one.
    """
    safe = {file: _inside(path) for file, path in wished.items()}
    safe = {file: path.with_name(f'{path.name.removesuffix(suffix)}{suffix}') for file, path in safe.items()}
    folders = {folder for path in safe.values() for folder in path.parents}  # a file cannot have a folder's name
    taken = {folded(str(folder)) for folder in folders}
    paths: dict[str, Path] = {}
    next_number: dict[Path, int] = {}
    for file, path in safe.items():
        plain = path
        while folded(str(path)) in taken:
            number = next_number[plain] = next_number.get(plain, 1) + 1
            path = plain.with_name(f'{plain.name.removesuffix(suffix)}-{number}{suffix}')
        taken.add(folded(str(path)))
        paths[file] = path
    return paths


def _inside(path: Path) -> Path:
    names = [printable(part).replace('\\', '_') for part in path.parts]
    parts = [name.encode()[:NAME_BYTES].decode(errors='ignore') for name in names]
    parts = [part for part in parts if part not in (path.anchor, os.curdir, os.pardir)] or ['unnamed']
    inside = Path(*parts)
    return inside if len(os.fsencode(inside)) <= PATH_BYTES else Path(inside.name)
