"""Files of predicted masks: PNG with the colours of the classes, or GeoTIFF for a GeoTIFF."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from vt.engine.output_paths import distinct_paths
from vt.errors import UserError
from vt.files import interpreting
from vt.image_bounds import TIFF

from .image_files import check_paths

COLOURS = 256  # in a palette; masks of more classes have 16 bits and no palette
LABELS = 65536  # in 16 bits
# Scale, tie points, transformation, keys, numbers and strings of the coordinate system, polynomials.
GEOREFERENCE = (33550, 33922, 34264, 34735, 34736, 34737, 50844)
BIG_TIFF = 43  # third byte of such files


def mask_paths(
    files: dict[str, Path], folder: Path | None, kept: Iterable[Path] = (), option: str = '--masks'
) -> dict[str, Path]:
    """Return a distinct path ``NAME.png`` for the mask of each file ``NAME.*``, given the paths of its figures.

    Raises:
        UserError: the folder is a file, or a mask in it, PNG or TIFF, would overwrite an image or a file to keep.
    """
    names = {file: path.name.removesuffix('.png').removesuffix(Path(file).suffix) for file, path in files.items()}
    masks = distinct_paths({file: path.with_name(names[file] or path.name) for file, path in files.items()})
    for suffix in ('.png', '.tif'):
        check_paths([*files, *kept], [path.with_suffix(suffix) for path in masks.values()], folder, option)
    return masks


def encode_mask(labels: np.ndarray, palette: Sequence[Sequence[int]], image: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a mask.

    Args:
        labels: labels ``(H, W)``, integers from 0.
        palette: RGB colours of the classes, 0 to 255.
        image: path of the image, whose georeference is kept.

    Raises:
        UserError: a class without colour or above 16 bits, or a damaged georeference.
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
