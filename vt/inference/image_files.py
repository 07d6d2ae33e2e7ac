"""Files of images: those that a user gives by name or folder, where their outputs go, and reading them."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from PIL import Image, ImageOps

from vt.engine.output_paths import distinct_paths
from vt.errors import MissingFileError, UserError
from vt.folders import files_below
from vt.image_bounds import check_image_size

Read = TypeVar('Read')
CANVAS = (124, 117, 104)  # mmcv's colour below grey images with transparency


def find_files(inputs: Iterable[str], extensions: tuple[str, ...]) -> dict[str, Path]:
    """Return files given by name or folder, each once, with the paths of their figures.

    The path of a figure is the path within the folder, or the name of a file. Where these are equal, it is the path
    from the folder that all such files are in.

    Raises:
        UserError: a folder has no file with these extensions.
    """
    files: dict[str, tuple[str, Path]] = {}  # by absolute path
    for given in inputs:
        if not os.path.isdir(given):
            files.setdefault(os.path.abspath(given), (given, Path(Path(given).name)))
            continue
        found = {str(path): path.relative_to(given) for path in sorted(map(Path, files_below(given)))}
        others = Counter(own.suffix.lower() for own in found.values() if own.suffix.lower() not in extensions)
        found = {path: own for path, own in found.items() if own.suffix.lower() not in others}
        if not found:
            raise UserError(f'{given} contains no file that ends in {", ".join(extensions)}')
        if others:
            listed = ', '.join(f'{number} {suffix or "without suffix"}' for suffix, number in others.most_common())
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


def read_image(path: str | Path, backend: str = 'cv2') -> np.ndarray:
    """Read an image file as mmcv does, by ``'cv2'`` or ``'pillow'``: ``(height, width, 3)``, uint8, blue first.

    Raises:
        UserError: the file does not exist, is not an image, damaged, or too large.
    """
    decoders = dict(cv2=lambda data: cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), pillow=_by_pillow)
    return load_image(path, lambda: decoders[backend](Path(path).read_bytes()))


def load_image(path: str | Path, load: Callable[[], Read | None]) -> Read:
    """Return what a function makes of an image file; errors as in :func:`read_image`."""
    require_image(path)
    try:
        loaded = load() if check_image_size(path) else None
    except cv2.error as error:
        raise UserError(f'{path} is no image that can be read: {" ".join(str(error).split())}') from error
    except AssertionError:  # of mmcv's transform, if the decoder returns None
        loaded = None
    if loaded is None:
        raise UserError(f'{path} is no image that can be read')
    return loaded


def require_image(path: str | Path) -> None:
    """Raise a MissingFileError if there is no such file."""
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no image {path}')


def _by_pillow(content: bytes) -> np.ndarray:
    image = ImageOps.exif_transpose(Image.open(BytesIO(content)))
    if image.mode == 'LA':
        above, image = image.convert('RGBA'), Image.new('RGB', image.size, CANVAS)
        image.paste(above, mask=above.getchannel('A'))
    return np.asarray(image.convert('RGB'))[..., ::-1]
