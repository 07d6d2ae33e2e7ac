"""Limits of the size of images and clips, checked in the header before a file is decoded."""

import functools
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from .errors import FileError, UserError

# Suffixes of formats that both OpenCV and Pillow read.
EXTENSIONS = ('.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp')
MAX_RATIO = 100  # longer over shorter side: resizing the shorter one enlarges a thin image
MAX_DRAWN = 16_000_000  # pixels of a figure's image; Matplotlib uses 120 bytes for each
VALUES = 12  # a pixel of the largest image, of all frames of a sample, of scores: by default 8.6 GB in float32
LARGER = 'make it smaller, or raise VT_MAX_PIXELS in the environment'
NUMPY = b'\x93NUMPY'  # files of ``np.save`` begin with it
TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')


@functools.cache
def max_pixels() -> int:
    """Return the most pixels of an image or a frame: ``VT_MAX_PIXELS`` of the environment, or what Pillow allows.

    Pillow, which reads masks, gets the limit that is set.
    """
    given = os.environ.get('VT_MAX_PIXELS')
    if given is None:
        return 2 * (Image.MAX_IMAGE_PIXELS or 2**40)  # it warns of half as many
    if not given.isdecimal() or not int(given):
        raise UserError(f'VT_MAX_PIXELS={given!r} in the environment must be a number of pixels')
    Image.MAX_IMAGE_PIXELS = int(given)
    return int(given)


def check_image_size(file: str | Path | BytesIO, name: str | Path | None = None) -> bool:
    """Refuse an image, of any number of channels, that would take gigabytes of memory when it is decoded, or resized.

    A UserError, which begins with ``name``, by default ``file``, says that it has too many pixels, or a ratio of the
    sides above ``MAX_RATIO``. Return whether Pillow can open the file. If not, its reader reports what is wrong.
    """
    is_image, limit = True, max_pixels()
    try:
        with Image.open(file) as header:
            shape = header.height, header.width
    except Image.DecompressionBombError:
        shape = limit, 2
    except Exception:  # a missing file, an address, not an image, or any error of a decoder
        is_image, shape = False, _shape_of_bands(file)
    if problem := _too_large(shape):
        raise UserError(f'{file if name is None else name} {problem}')
    return is_image


def _shape_of_bands(file: str | Path | BytesIO) -> tuple[int, ...]:
    """Return the shape in the header of a NumPy array or a TIFF; nothing of other and damaged files."""
    with suppress(Exception), open(file, 'rb') if not isinstance(file, BytesIO) else BytesIO(file.getvalue()) as opened:
        start = opened.read(len(NUMPY))
        opened.seek(0)
        if start == NUMPY:
            formats, version = np.lib.format, np.lib.format.read_magic(opened)
            return (formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0)(opened)[0]
        if start.startswith(TIFF):
            import tifffile

            with tifffile.TiffFile(opened) as tiff:
                return tiff.series[0].shape
    return ()


def check_frames(size: tuple[int, int], number: int = 1) -> None:
    """Raise a FileError if the frames of a video would take gigabytes; the caller adds the name of the file."""
    if problem := _too_large(size):
        raise FileError(f'a frame {problem}')
    if number * math.prod(size) > (most := VALUES * max_pixels() // 3):
        limit = f'{most:,} pixels'
        raise FileError(f'has frames of {size[0]}x{size[1]}: {number} of them are more than {limit}: {LARGER}')


def check_scores(
    size: tuple[int, int], num_classes: int, name: str, advice: str = "use type='vt.LargeImageSegmentor'"
) -> None:
    """Raise a UserError if the scores of an image, one per pixel and class, would take many gigabytes."""
    if math.prod(size) * num_classes > VALUES * max_pixels():
        most = VALUES * max_pixels() // num_classes / 10**6
        reason = f'with {num_classes} classes at most {most:.0f} million are supported'
        raise UserError(f'{name} has {size[0]}x{size[1]} pixels, too many: {reason}; {advice}')


def drawn_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width of an image in a figure: at most ``MAX_DRAWN`` pixels, same ratio."""
    scale = min(1, math.sqrt(MAX_DRAWN / math.prod(size)))
    height, width = (max(1, int(scale * side)) for side in size)
    return height, width


def _too_large(shape: Sequence[int]) -> str | None:
    height, width = shape if len(shape) == 2 else sorted((0, 0, *shape))[-2:]  # there may be more channels than rows
    for what, number, most in (('pixels', height * width, 1), ('values', math.prod(shape), VALUES)):
        if number > most * max_pixels():
            return f'has more than {most * max_pixels():,} {what}: {LARGER}'
    if len(shape) > 1 and (max(height, width) > MAX_RATIO * min(height, width) or not width):
        return f'has {height}x{width} pixels: one side is more than {MAX_RATIO} times the other, cut it into pieces'
    return None
