"""Files of predicted masks: PNG with the colours of the classes, or GeoTIFF for a GeoTIFF."""

from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vt.engine.output_paths import distinct_paths
from vt.errors import UserError
from vt.image_bounds import TIFF

COLOURS = 256  # in a palette; masks of more classes have 16 bits and no palette
# Scale, tie points, transformation, keys, numbers and strings of the coordinate system, polynomials.
GEOREFERENCE = (33550, 33922, 34264, 34735, 34736, 34737, 50844)


def mask_paths(files: dict[str, Path]) -> dict[str, Path]:
    """Return a distinct path ``NAME.png`` for the mask of each file ``NAME.*``, given the paths of its figures."""
    names = {file: path.name.removesuffix('.png').removesuffix(Path(file).suffix) for file, path in files.items()}
    return distinct_paths({file: path.with_name(names[file] or path.name) for file, path in files.items()})


def encode_mask(labels: np.ndarray, palette: Sequence[Sequence[int]], image: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a mask.

    Args:
        labels: labels ``(H, W)``, integers from 0.
        palette: RGB colours of the classes, 0 to 255.
        image: path of the image, whose georeference is kept.
    """
    few, content = len(palette) <= COLOURS, BytesIO()
    colours = np.zeros((COLOURS, 3), np.uint8)
    if few:
        colours[: len(palette)] = palette
    labels = labels.astype(np.uint8 if few else np.uint16)
    if georeference := read_georeference(image):
        import tifffile

        kind = dict(photometric='palette', colormap=257 * colours.T.astype(np.uint16))
        kind = kind if few else dict(photometric='minisblack')
        tifffile.imwrite(content, labels, extratags=georeference, compression='zlib', metadata=None, **kind)
        return '.tif', content.getvalue()
    mask = Image.fromarray(labels)
    if few:
        mask.putpalette(colours[: max(1, len(palette))].tobytes())
    mask.save(content, 'PNG')
    return '.png', content.getvalue()


def read_georeference(image: str) -> list[tuple[Any, ...]]:
    """Return the georeference tags of a GeoTIFF, in tifffile's form; none for other files."""
    with open(image, 'rb') as file:
        if not file.read(4).startswith(TIFF):
            return []
    if find_spec('tifffile') is None:
        raise UserError("--masks of TIFF files need tifffile: pip install 'visual-transformers[bands]'")
    import tifffile

    with tifffile.TiffFile(image) as file:
        tags = (file.pages[0].tags.get(code) for code in GEOREFERENCE)
        return [(tag.code, tag.dtype, tag.count, tag.value, True) for tag in tags if tag is not None]
