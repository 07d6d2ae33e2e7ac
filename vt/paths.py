"""Paths of input files, and of output files: checked before any work is done, and distinct."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from vt.errors import UserError
from vt.files import files_below, list_suffixes, temporary_folder
from vt.untrusted_text import folded, printable

NAME_BYTES, PATH_BYTES = 200, 1000  # of a name and of a relative path; file systems allow 255 and 4096


def check_output(out: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise a UserError, before any work is done, if a file cannot be written to a path, or is one of the inputs."""
    if out is None:
        return
    out = Path(out)
    if out.is_dir():
        raise UserError(f'{out} is a folder: give the path of a file to write')
    if out.exists() and any(path and os.path.exists(path) and out.samefile(path) for path in inputs):
        raise UserError(f'{out} is an input and would be overwritten: choose another file to write')
    if out.is_file() or not out.exists():  # no device such as /dev/stdout
        check_folder(Path(os.path.realpath(out)).parent)


def check_folder(folder: Path) -> None:
    """Raise a UserError, before any work is done, if a folder can neither be written to nor created."""
    while not os.path.lexists(folder):
        folder = folder.parent
    try:
        with temporary_folder(folder):
            pass
    except OSError as error:
        raise UserError(f'cannot write to folder {folder} ({error.strerror}): choose another one') from error


def find_files(inputs: Iterable[str], extensions: tuple[str, ...]) -> dict[str, Path]:
    """Return files given by name or folder, each once, with the paths of their figures.

    The path of a figure is the path within the folder, or the name of a file. Where these are equal, it is the path
    from the folder that all such files are in. A folder without files of these extensions is a UserError.
    """
    files: dict[str, tuple[str, Path]] = {}  # by absolute path
    for given in inputs:
        if not os.path.isdir(given):
            files.setdefault(os.path.abspath(given), (given, Path(Path(given).name)))
            continue
        found = {str(path): path.relative_to(given) for path in sorted(map(Path, files_below(given)))}
        others = Counter(own.suffix.lower() for own in found.values() if own.suffix.lower() not in extensions)
        found = {path: own for path, own in found.items() if own.suffix.lower() not in others}
        listed = list_suffixes(others)
        if not found:
            raise UserError(f'{given} contains no file that ends in {", ".join(extensions)}, but {listed}')
        if others:
            print(f'warning: {given} contains files of other types, which are skipped: {listed}', file=sys.stderr)
        for path, own in found.items():
            files.setdefault(os.path.abspath(path), (path, own))
    times = Counter(own for _, own in files.values())
    alike = [whole for whole, (_, own) in files.items() if times[own] > 1]
    above = os.path.commonpath(map(os.path.dirname, alike)) if alike else ''
    return distinct_paths(
        {path: own if times[own] == 1 else Path(whole).relative_to(above) for whole, (path, own) in files.items()}
    )


def check_paths(kept: Iterable[str | Path], written: Iterable[Path], folder: Path | None, option: str) -> None:
    """Raise a UserError if the folder of an option is a file, or if a path to keep would be overwritten."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UserError(f'{option} {folder} is a file: give a folder')
    taken = {Path(file).resolve() for file in kept}
    for path in written:
        if (folder / path).resolve() in taken:
            raise UserError(f'{folder / path} would be overwritten: choose another folder for {option}')


def mask_paths(
    files: dict[str, Path], folder: Path | None, kept: Iterable[Path] = (), option: str = '--masks'
) -> dict[str, Path]:
    """Return a distinct path ``NAME.png`` for the mask of each file ``NAME.*``, given the paths of its figures.

    A mask, PNG or TIFF, that would overwrite an image or a file to keep is a UserError.
    """
    names = {file: path.name.removesuffix('.png').removesuffix(Path(file).suffix) for file, path in files.items()}
    masks = distinct_paths({file: path.with_name(names[file] or path.name) for file, path in files.items()})
    for suffix in ('.png', '.tif'):
        check_paths([*files, *kept], [path.with_suffix(suffix) for path in masks.values()], folder, option)
    return masks


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
