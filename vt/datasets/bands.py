"""Load images with any number of channels and bits: NumPy's ``.npy``, TIFF with several bands, 16-bit PNG."""

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from PIL import Image

from vt.errors import UserError
from vt.files import parse_errors
from vt.image_bounds import NUMPY, TIFF, check_image_size
from vt.registry import TRANSFORMS
from vt.untrusted_text import printable

GDAL_NODATA = 42113  # tag of TIFF: the value of pixels without data, as text
DECODED = ('AVIF', 'BMP', 'GIF', 'JPEG', 'JPEG2000', 'MPO', 'PNG', 'PPM', 'SUN', 'TIFF', 'WEBP')  # formats of OpenCV
MAX_PIECE = 4_000_000  # maximum compressed bytes without imagecodecs: Python's own decoders have no limit on the result


@TRANSFORMS.register_module()
class LoadBands(LoadImageFromFile):
    """Load an image with any number of channels as float32, in the units and channel order of the file.

    Use it instead of ``LoadImageFromFile``. It reads ``.npy``, TIFF and PNG. TIFF needs ``tifffile``; the
    first image of the file is read, with bands in pixels, in planes or on pages. Other files are read by OpenCV without
    changes, in the order red, green, blue, and not rotated by EXIF.

    Args:
        bands: channels of the file to use, from 0, in this order; all by default.
        channels_first: whether arrays in ``.npy`` are (channels, height, width) instead of (height, width, channels).
        backend_args: arguments of mmengine's file backend.

    Raises:
        UserError: ``bands`` are not indices of channels; or a file has another format, is damaged or too large, has no
            such channel, or has values that are NaN, infinite, or nodata as marked by GDAL, unless they are 0.
    """

    def __init__(
        self, bands: Sequence[int] | None = None, channels_first: bool = False, backend_args: dict | None = None
    ) -> None:
        if bands is not None and not (bands and all(type(band) is int and band >= 0 for band in bands)):
            raise UserError(f'LoadBands.bands={bands} must be indices of channels, from 0')
        super().__init__(to_float32=True, color_type='unchanged', backend_args=backend_args)
        self.bands, self.channels_first = bands, channels_first

    def transform(self, results: dict) -> dict:
        """Add ``img`` (height, width, channels), ``img_shape`` and ``ori_shape`` to the results."""
        image = np.ascontiguousarray(self.read(results['img_path']), np.float32)
        return results | dict(img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])

    def read(self, path: str) -> np.ndarray:
        """Read the channels of a file as (height, width, channels), in its own dtype; errors as above."""
        image = read_bands(fileio.get(path, backend_args=self.backend_args), path, self.channels_first)
        if self.bands is not None and max(self.bands) >= image.shape[2]:
            raise UserError(f'{path} has {image.shape[2]} channels, too few for LoadBands.bands={self.bands}')
        if image.dtype.kind == 'f' and (wrong := image.size - np.count_nonzero(np.isfinite(image))):
            raise UserError(f'{path} has {wrong:,} values that are NaN or infinite: replace them by numbers')
        return image if self.bands is None else image[..., list(self.bands)]


def read_bands(content: bytes, name: str, channels_first: bool = False) -> np.ndarray:
    """Decode an image as (height, width, channels) after checking its size; errors as of :class:`LoadBands`.

    Args:
        content: content of the file.
        name: name of the file, for messages.
        channels_first: see :class:`LoadBands`.
    """
    is_image = check_image_size(BytesIO(content), name)
    with parse_errors(name):
        if content.startswith(NUMPY):
            image = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
            image = np.moveaxis(image, 0, -1) if channels_first and image.ndim == 3 else image
        elif content.startswith(TIFF):
            image = _read_tiff(content, name)
        else:
            image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED) if is_image else None
            image = image if image is None or image.ndim == 2 else image[..., [2, 1, 0, 3][: image.shape[2]]]
    if image is None:
        raise UserError(f'{name} is not a readable image')
    if image.ndim not in (2, 3) or not image.size or image.dtype.kind not in 'buif':
        raise UserError(f'{name} has shape {image.shape}, {image.dtype}, not (height, width, channels) of numbers')
    return image if image.ndim == 3 else image[..., None]


def why_unread(path: str | Path) -> str | None:
    """Return why OpenCV does not read an image as colours, and what to do; None if the image is damaged."""
    with suppress(Exception):  # of any decoder
        content = Path(path).read_bytes()
        if content.startswith((NUMPY, *TIFF)):
            image = read_bands(content, str(path))
            sides = 'x'.join(map(str, image.shape))
            return f'has {sides} values of {image.dtype}, not 8-bit colours: load it with vt.LoadBands'
        with Image.open(BytesIO(content)) as header:
            if header.format not in DECODED:
                return f'is {header.format}, which OpenCV does not read: convert it to PNG'
    return None


def as_rgb(image: np.ndarray) -> np.ndarray:
    """Convert an image with any number of channels to (height, width, 3), uint8, for display.

    Images with three 8-bit channels are not changed. Otherwise the three channels, or the mean of all channels, are
    scaled from the 2nd percentile (black) to the 98th (white).
    """
    if image.shape[2] == 3 and image.dtype == np.uint8:
        return image
    shown = (image if image.shape[2] == 3 else image.mean(axis=2, keepdims=True)).astype(np.float32)
    low, high = np.percentile(shown, (2, 98))
    spread = np.clip((shown - low) / max(high - low, 1e-12), 0, 1)
    return np.broadcast_to((255 * spread).astype(np.uint8), (*image.shape[:2], 3)).copy()


def _count_nodata(image: np.ndarray, marked: str) -> int:
    """Return how many values are the one that GDAL marks as no data; 0 is a number like others, as at edges."""
    with suppress(ValueError):
        value = float(marked.strip().strip('\0'))
        return int((image == value).sum()) if value else 0
    return 0


def _read_tiff(content: bytes, name: str) -> np.ndarray:
    """Read the first image of a TIFF as (height, width) or (height, width, channels)."""
    if find_spec('tifffile') is None:
        raise UserError('TIFF requires tifffile: pip install tifffile')
    import tifffile

    with tifffile.TiffFile(BytesIO(content)) as file:
        series = file.series[0]
        pieces = max(max(page.databytecounts, default=0) for page in series.pages if page is not None)
        if file.pages[0].compression != 1 and pieces > MAX_PIECE and find_spec('imagecodecs') is None:
            raise UserError(f'{name} is compressed in segments of {pieces:,} bytes: pip install imagecodecs to read it')
        sides = [axis for axis, size in zip(series.axes, series.shape) if size > 1 or axis in 'YX']
        if not {'Y', 'X'} <= {*sides} or len(sides) > 3:
            raise UserError(f'{name} has axes {series.axes} of sizes {series.shape}, not rows, columns and bands')
        image, tag = series.asarray(), file.pages.first.tags.get(GDAL_NODATA)
    marked = '' if tag is None else str(tag.value)
    if number := _count_nodata(image, marked):
        without = f'{number:,} values {printable(marked.strip(), 40)}, which it marks as nodata'
        raise UserError(f'{name} has {without}: replace them, such as by 0 with gdalwarp -dstnodata 0')
    image = image.reshape([size for axis, size in zip(series.axes, series.shape) if axis in sides])
    order = sorted(range(len(sides)), key=lambda index: {'Y': 0, 'X': 1}.get(sides[index], 2))
    return image.transpose(order)
