"""Images of any number of channels and of more than eight bits: NumPy's ``.npy``, TIFF of several bands, 16-bit PNG."""

from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO

import cv2
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio

from vt.errors import UserError
from vt.image_bounds import NUMPY, TIFF, check_bands, check_image_size
from vt.registry import TRANSFORMS
from vt.untrusted_text import printable

MAX_PIECE = 4_000_000  # compressed bytes that Python's own decoders unfold, without bounds, where imagecodecs is not


@TRANSFORMS.register_module()
class LoadBands(LoadImageFromFile):
    """Load an image of any number of channels, float32 in the file's own units and order: ``.npy``, TIFF, PNG.

    It stands in the place of ``LoadImageFromFile``. TIFF needs the extra ``[bands]``; its first image is read, whatever
    the place of its bands: in each pixel, one behind the other, or on a page each. Other files are what OpenCV reads
    unchanged, with red, green and blue in this order; they are not turned by EXIF.

    Args:
        bands: which channels of the file are taken, from 0, in this order; all by default.
        channels_first: whether an array of a ``.npy`` is (channels, height, width) rather than (height, width,
            channels).
        backend_args: of mmengine's file backend.

    Raises:
        UserError: a file is none of these, is damaged or too large, has no such band, or values that are no numbers.
    """

    def __init__(
        self, bands: Sequence[int] | None = None, channels_first: bool = False, backend_args: dict | None = None
    ) -> None:
        super().__init__(to_float32=True, color_type='unchanged', backend_args=backend_args)
        good = bands is None or (isinstance(bands, (list, tuple)) and bands and all(type(b) is int for b in bands))
        if not good or min(bands or (0,)) < 0:
            raise UserError(f'LoadBands: bands={bands!r} must be numbers of channels from 0, or None for all')
        self.bands, self.channels_first = bands, channels_first

    def transform(self, results: dict) -> dict:
        """Enter ``img`` (height, width, channels), ``img_shape`` and ``ori_shape``."""
        image = np.ascontiguousarray(self.read(results['img_path']), np.float32)
        return results | dict(img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])

    def read(self, path: str) -> np.ndarray:
        """The bands of a file, (height, width, channels), of its own type of numbers; errors as above."""
        image = read_bands(fileio.get(path, backend_args=self.backend_args), path, self.channels_first)
        if self.bands is not None and max(self.bands) >= image.shape[2]:
            raise UserError(f'{path} has {image.shape[2]} channels: LoadBands.bands={self.bands} asks for more')
        if image.dtype.kind == 'f' and (wrong := image.size - np.count_nonzero(np.isfinite(image))):
            raise UserError(f'{path} has {wrong:,} values that are NaN or infinite: put numbers in their place')
        return image if self.bands is None else image[..., list(self.bands)]

    def __repr__(self) -> str:
        return f'LoadBands(bands={self.bands}, channels_first={self.channels_first})'


def read_bands(content: bytes, name: str, channels_first: bool = False) -> np.ndarray:
    """An image file's numbers, (height, width, channels), measured before they are decoded; errors as above.

    Args:
        content: of the file.
        name: of the file, for errors.
        channels_first: as of :class:`LoadBands`.
    """
    check_bands(BytesIO(content), name)
    try:
        if content.startswith(NUMPY):
            image = np.lib.format.read_array(BytesIO(content), allow_pickle=False)
            image = np.moveaxis(image, 0, -1) if channels_first and image.ndim == 3 else image
        elif content.startswith(TIFF):
            image = _read_tiff(content, name)
        else:
            is_image = check_image_size(BytesIO(content), name)
            image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED) if is_image else None
            image = image if image is None or image.ndim == 2 else image[..., [2, 1, 0, 3][: image.shape[2]]]
    except UserError:
        raise
    except Exception as error:  # a decoder's, of any type
        raise UserError(f'{name} cannot be read: {printable(error, 200)}') from error
    if image is None:
        raise UserError(f'{name} is no image that can be read')
    if image.ndim not in (2, 3) or not image.size or image.dtype.kind not in 'buif':
        raise UserError(f'{name} holds {image.shape} of {image.dtype}: (height, width, channels) of numbers is needed')
    return image if image.ndim == 3 else image[..., None]


def as_rgb(image: np.ndarray) -> np.ndarray:
    """An image of any number of channels to look at: (height, width, 3) uint8.

    One of three channels of eight bits stays as it is. Of others these three, or the mean of all channels, are spread
    from black to white between the 2nd and the 98th percentile.
    """
    if image.shape[2] == 3 and image.dtype == np.uint8:
        return image
    shown = (image if image.shape[2] == 3 else image.mean(axis=2, keepdims=True)).astype(np.float32)
    low, high = np.percentile(shown, (2, 98))
    spread = np.clip((shown - low) / max(high - low, 1e-12), 0, 1)
    return np.broadcast_to((255 * spread).astype(np.uint8), (*image.shape[:2], 3)).copy()


def _read_tiff(content: bytes, name: str) -> np.ndarray:
    """The first image of a TIFF, its channels last."""
    if find_spec('tifffile') is None:
        raise UserError("TIFF of several bands needs tifffile: pip install 'visual-transformers[bands]'")
    import tifffile

    with tifffile.TiffFile(BytesIO(content)) as file:
        series = file.series[0]
        pieces = max(max(page.databytecounts, default=0) for page in series.pages if page is not None)
        if file.pages[0].compression != 1 and pieces > MAX_PIECE and find_spec('imagecodecs') is None:
            raise UserError(f'{name} is compressed in pieces of {pieces:,} bytes: pip install imagecodecs to read it')
        sides = [axis for axis, size in zip(series.axes, series.shape) if size > 1 or axis in 'YX']
        if not {'Y', 'X'} <= {*sides} or len(sides) > 3:
            raise UserError(f'{name} has the axes {series.axes} of {series.shape}: rows, columns and bands are needed')
        image = series.asarray()
    image = image.reshape([size for axis, size in zip(series.axes, series.shape) if axis in sides])
    order = sorted(range(len(sides)), key=lambda index: {'Y': 0, 'X': 1}.get(sides[index], 2))
    return image.transpose(order)
