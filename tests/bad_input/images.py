"""Good and bad image files."""

import io

import numpy as np
from PIL import Image


def colours(height=40, width=50):
    """A smooth image: codecs keep its colours, so that they can be compared."""
    y, x = np.mgrid[:height, :width]
    return np.stack([4 * x, 5 * y, 2 * x + 2 * y], -1).astype(np.uint8)


def encode(image, format='PNG', **options):
    buffer = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(buffer, format, **options)
    return buffer.getvalue()


RGB = Image.fromarray(colours())
GREY = np.asarray(RGB.convert('L'))
# Name and content of files that no decoder reads.
DAMAGED = {
    'truncated JPEG': ('bad.jpg', encode(RGB, 'JPEG')[:-100]),
    'truncated PNG': ('bad.png', encode(RGB)[:-60]),
    'zero bytes': ('bad.jpg', b''),
    'text named .jpg': ('bad.jpg', b'this is no image, whatever its name says\n'),
    'float TIFF': ('bad.tif', encode(GREY.astype(np.float32) / 255, 'TIFF')),
}
MASK = np.arange(40 * 50, dtype=np.uint8).reshape(40, 50) % 4
# Content of masks, and what is said of them.
MASKS = {
    'colour': (encode(RGB), 'bad.png has mode RGB, but a mask must have one 8-bit label per pixel'),
    '16-bit': (encode(MASK.astype(np.uint16)), 'bad.png has mode I;16, but a mask must have one 8-bit'),
    'float TIFF': (encode(MASK.astype(np.float32), 'TIFF'), 'bad.png has mode F, but a mask must have one 8-bit'),
    'alpha': (encode(RGB.convert('RGBA')), 'bad.png has mode RGBA, but a mask must have one 8-bit'),
    'zero bytes': (b'', 'bad.png cannot be read: '),
    'truncated': (encode(MASK)[:-60], 'bad.png cannot be read: '),
    'other size': (encode(MASK[:, :-1]), 'bad.png has 40x49 pixels, but its image'),
    'label outside': (encode(MASK + 20), 'bad.png has the label 20, outside the 11 classes'),
}
