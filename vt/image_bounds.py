"""Limits of the size of images and clips, checked in the header before a file is decoded."""

import math
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from .errors import FileError, UserError

# Suffixes of formats that both OpenCV and Pillow read.
EXTENSIONS = ('.bmp', '.jpeg', '.jpg', '.pbm', '.pgm', '.png', '.ppm', '.tif', '.tiff', '.webp')
MAX_PIXELS = 64_000_000  # of an image, or of a frame
MAX_RATIO = 100  # longer over shorter side: resized to a shorter side of 800, such an image has MAX_PIXELS
MAX_VALUES = 4 * MAX_PIXELS  # of an image, one per pixel and channel: 1 GB in memory
MAX_SCORES = 2_000_000_000  # of a segmentor, one per pixel and class: 8 GB, 150 classes at 13 million pixels
MAX_DRAWN = 16_000_000  # pixels of a figure's image; Matplotlib uses 120 bytes for each
MAX_CLIP_PIXELS = 1_000_000_000  # of the frames of one sample: 3 GB
NUMPY = b'\x93NUMPY'  # files of ``np.save`` begin with it
TIFF = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')


def check_image_size(file: str | Path | BytesIO, name: str | Path | None = None) -> bool:
    """Refuse an image that would take gigabytes of memory when it is decoded, or resized by the pipeline.

    A UserError, which begins with ``name``, by default ``file``, says that it has too many pixels, or a ratio of the
    sides above ``MAX_RATIO``. Return whether Pillow can open the file. If not, its reader reports what is wrong.
    """
    name = file if name is None else name
    try:
        with Image.open(file) as header:
            width, height = header.size
    except Image.DecompressionBombError:
        width = height = MAX_PIXELS
    except Exception:  # a missing file, an address, not an image, or any error of a decoder
        with (
            suppress(OSError),
            open(file, 'rb') if not isinstance(file, BytesIO) else BytesIO(file.getvalue()) as opened,
        ):
            check_bands(opened, name)
        return False
    if problem := _too_large(height, width):
        raise UserError(f'{name} {problem}')
    return True


def check_bands(file: BinaryIO, name: str | Path) -> None:
    """Check the header of a NumPy array or a TIFF of any number of channels, as :func:`check_image_size`.

    Other and damaged files are ignored: their reader reports what is wrong.
    """
    start = file.read(len(NUMPY))
    file.seek(0)
    try:
        if start == NUMPY:
            version = np.lib.format.read_magic(file)
            formats = np.lib.format
            shape = (formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0)(file)[0]
        elif start.startswith(TIFF):
            import tifffile

            with tifffile.TiffFile(file) as opened:
                shape = opened.series[0].shape
        else:
            return
    except Exception:  # of any type
        return
    sides = sorted(shape)[-2:]  # there may be more channels than rows or columns
    if len(sides) == 2 and (problem := _too_large(*sides)):
        raise UserError(f'{name} {problem}')
    if math.prod(shape) > MAX_VALUES:
        raise UserError(f'{name} has more than {MAX_VALUES // 10**6} million values: make it smaller')


def check_frames(size: tuple[int, int], number: int = 1) -> None:
    """Raise a FileError if the frames of a video would take gigabytes; the caller adds the name of the file."""
    if problem := _too_large(*size):
        raise FileError(f'a frame {problem}')
    if number * math.prod(size) > MAX_CLIP_PIXELS:
        limit = f'{MAX_CLIP_PIXELS // 10**6:,} million pixels'
        raise FileError(f'has frames of {size[0]}x{size[1]}: {number} of them are more than {limit}: make it smaller')


def check_scores(
    size: tuple[int, int], num_classes: int, name: str, advice: str = "take type='vt.LargeImageSegmentor'"
) -> None:
    """Raise a UserError if the scores of an image, one per pixel and class, would take many gigabytes."""
    if math.prod(size) * num_classes > MAX_SCORES:
        most = MAX_SCORES // num_classes / 10**6
        reason = f'{num_classes} classes take at most {most:.0f} million'
        raise UserError(f'{name} has {size[0]}x{size[1]} pixels: {reason}; {advice}')


def drawn_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the height and width of an image in a figure: at most ``MAX_DRAWN`` pixels, same ratio."""
    scale = min(1, math.sqrt(MAX_DRAWN / math.prod(size)))
    return tuple(max(1, int(scale * side)) for side in size)


def _too_large(height: int, width: int) -> str | None:
    if height * width > MAX_PIXELS:
        return f'has more than {MAX_PIXELS // 10**6} million pixels: make it smaller'
    if max(height, width) > MAX_RATIO * min(height, width) or not width:
        return f'has {height}x{width} pixels: one side is more than {MAX_RATIO} times the other, cut it into pieces'
    return None
