"""Files of images and of predicted masks: how they are read and written.

Masks are PNG with the colours of the classes, or GeoTIFF for a GeoTIFF.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import cv2
import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from vt.errors import MissingFileError, UserError
from vt.files import parse_errors
from vt.image_bounds import TIFF, check_image_size

Read = TypeVar('Read')
COLOURS = 256  # in a palette; masks of more classes have 16 bits and no palette
LABELS = 65536  # in 16 bits
# Scale, tie points, transformation, keys, numbers and strings of the coordinate system, polynomials.
GEOREFERENCE = (33550, 33922, 34264, 34735, 34736, 34737, 50844)
BIG_TIFF = 43  # third byte of such files


def read_image(path: str | Path, explain: Callable = lambda path: None) -> np.ndarray:
    """Read an image file with OpenCV, as mmcv does: ``(height, width, 3)``, uint8, blue first; errors as below."""

    def decode() -> np.ndarray | None:
        return cv2.imdecode(np.frombuffer(Path(path).read_bytes(), np.uint8), cv2.IMREAD_COLOR)

    return load_image(path, decode, explain)


def load_image(path: str | Path, load: Callable[[], Read | None], explain: Callable = lambda path: None) -> Read:
    """Load an image file with ``load`` after a check of its size; ``explain`` may word the UserError."""
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no image {path}')
    loaded = None
    with parse_errors(path), suppress(AssertionError):  # mmcv's, of what OpenCV does not read
        loaded = load() if check_image_size(path) else None
    if loaded is None:
        raise UserError(f'{path} {explain(path) or "is not a readable image"}')
    return loaded


def encode_mask(labels: np.ndarray, palette: Sequence[Sequence[int]], image: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a mask of labels ``(H, W)``, with the georeference of its image.

    A class without a colour in the palette, RGB from 0 to 255, or above 16 bits, is a UserError.
    """
    if labels.max() >= min(len(palette), LABELS):
        raise UserError(f'class {labels.max()} has none of the {len(palette)} colours, or does not fit into 16 bits')
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
    with Path(image).open('rb') as file:
        header = file.read(8)
        if not header.startswith(TIFF):
            return None
        with parse_errors(image):
            tags = ImageFileDirectory_v2(header + (file.read(8) if header[2] == BIG_TIFF else b''))
            file.seek(tags.next)
            tags.load(file)
            for code in filter(tags.__contains__, GEOREFERENCE):
                kept.tagtype[code] = tags.tagtype[code]
                kept[code] = tags[code]
    return kept if len(kept) else None
