"""Files of images and of predicted masks: which a user gives, how they are read, and where outputs go.

Masks are PNG with the colours of the classes, or GeoTIFF for a GeoTIFF.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from vt.errors import MissingFileError, UserError
from vt.files import distinct_paths, files_below, interpreting, list_suffixes
from vt.image_bounds import TIFF, check_image_size

Read = TypeVar('Read')
COLOURS = 256  # in a palette; masks of more classes have 16 bits and no palette
LABELS = 65536  # in 16 bits
# Scale, tie points, transformation, keys, numbers and strings of the coordinate system, polynomials.
GEOREFERENCE = (33550, 33922, 34264, 34735, 34736, 34737, 50844)
BIG_TIFF = 43  # third byte of such files


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
            print(f'warning: {given} contains files of other kinds, which are left out: {listed}', file=sys.stderr)
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
        raise UserError(f'{option} {folder} is a file where a folder is needed')
    taken = {Path(file).resolve() for file in kept}
    for path in written:
        if (folder / path).resolve() in taken:
            raise UserError(f'{folder / path} would be overwritten: give another folder than {option} {folder}')


def read_image(path: str | Path, explain: Callable = lambda path: None) -> np.ndarray:
    """Read an image file with OpenCV, as mmcv does: ``(height, width, 3)``, uint8, blue first; errors as below."""

    def decode() -> np.ndarray | None:
        return cv2.imdecode(np.frombuffer(Path(path).read_bytes(), np.uint8), cv2.IMREAD_COLOR)

    return load_image(path, decode, explain)


def load_image(path: str | Path, load: Callable[[], Read | None], explain: Callable = lambda path: None) -> Read:
    """Return what ``load`` makes of an image file of a checked size, or raise a UserError that ``explain`` may word."""
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no image {path}')
    loaded = None
    with interpreting(path), suppress(AssertionError):  # mmcv's, of what OpenCV does not read
        loaded = load() if check_image_size(path) else None
    if loaded is None:
        raise UserError(f'{path} {explain(path) or "is no image that can be read"}')
    return loaded


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


def encode_mask(labels: np.ndarray, palette: Sequence[Sequence[int]], image: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a mask of labels ``(H, W)``, with the georeference of its image.

    A class without a colour in the palette, RGB from 0 to 255, or above 16 bits, is a UserError.
    """
    if labels.max() >= min(len(palette), LABELS):
        raise UserError(f'class {labels.max()} has no colour of {len(palette)}, or is above those of 16 bits')
    few, content = len(palette) <= COLOURS, BytesIO()
    mask = Image.fromarray(labels.astype(np.uint8 if few else np.uint16))
    if few:
        mask.putpalette(np.asarray(palette, np.uint8).tobytes())
    if georeference := read_georeference(image):
        mask.save(content, 'TIFF', tiffinfo=georeference, compression='tiff_adobe_deflate')
        return '.tif', content.getvalue()
    mask.save(content, 'PNG')
    return '.png', content.getvalue()


def read_georeference(image: str) -> ImageFileDirectory_v2 | None:
    """Return the georeference tags of a GeoTIFF; None for other files."""
    kept = ImageFileDirectory_v2()
    with open(image, 'rb') as file:
        header = file.read(8)
        if not header.startswith(TIFF):
            return None
        with interpreting(image):
            tags = ImageFileDirectory_v2(header + (file.read(8) if header[2] == BIG_TIFF else b''))
            file.seek(tags.next)
            tags.load(file)
            for code in filter(tags.__contains__, GEOREFERENCE):
                kept.tagtype[code] = tags.tagtype[code]
                kept[code] = tags[code]
    return kept if len(kept) else None
