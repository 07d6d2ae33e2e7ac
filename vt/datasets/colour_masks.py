"""Masks in colours: the colours of classes, and the step of pipelines that loads such masks."""

import os
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Literal

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine import fileio
from PIL import Image

from vt.errors import MissingFileError, UserError
from vt.files import parse_errors, read_lines
from vt.image_bounds import check_image_size
from vt.registry import TRANSFORMS
from vt.untrusted_text import check_class_names, printable

# A name, and red, green and blue, as CVAT writes them (name:r,g,b::) or with spaces.
LINE = re.compile(r'(.+?)[\s,:;]+(\d{1,3})[\s,;]+(\d{1,3})[\s,;]+(\d{1,3})[\s:]*')


def read_colours(path: str | os.PathLike) -> dict[str, tuple[int, ...]]:
    """Return the colour of each class by its name, of a text file with lines ``name r g b`` or ``name:r,g,b::``.

    Empty lines and those that start with ``#`` are left out.

    Raises:
        MissingFileError: there is no such file.
        UserError: a line has another form, or two have the same name or colour.
    """
    if not os.path.isfile(path):
        raise MissingFileError(f'there is no {path}, a file of colours')
    colours: dict[str, tuple[int, ...]] = {}
    for number, line in enumerate(map(str.strip, read_lines(path)), 1):
        if line and not line.startswith('#'):
            found = LINE.fullmatch(line)
            if found is None or found[1] in colours:
                why = 'names a class again' if found else 'is not of the form: name r g b'
                raise UserError(f'{path}, line {number} {why}: {printable(line, 80)!r}')
            colours[found[1]] = tuple(map(int, found.groups()[1:]))
    return check_colours(colours, str(path))


def check_colours(colours: Any, source: str) -> dict[str, tuple[int, ...]]:
    """Return the colours of classes by name; a UserError, which begins with ``source``, says what is wrong."""
    if not isinstance(colours, Mapping) or not colours:
        raise UserError(f'{source} must be red, green and blue of each class, such as {{name: (255, 0, 0)}}')
    check_class_names([*colours], source)
    _codes_of([*colours.values()], source)
    return {name: tuple(map(int, colour)) for name, colour in colours.items()}


def _codes_of(colours: Sequence[Sequence[int]], source: str) -> np.ndarray:
    """Return a number for each colour; UserError if a colour is none, or is there twice."""
    for colour in colours:
        if (
            not isinstance(colour, Sequence)
            or len(colour) != 3
            or not all(isinstance(part, int) and 0 <= part <= 255 for part in colour)
        ):
            raise UserError(f'{source} has {printable(repr(colour), 80)}, not red, green and blue from 0 to 255')
    codes = encode(np.array(colours, np.uint8))
    if len({*codes.tolist()}) < len(codes) or len(codes) > 255:
        raise UserError(f'{source} must have at most 255 colours, each once')
    return codes


def encode(colours: np.ndarray) -> np.ndarray:
    """Return a number for each colour in an array ``(..., 3)``."""
    red, green, blue = np.moveaxis(colours.astype(np.int32), -1, 0)
    return (red << 16) | (green << 8) | blue


def check_label_options(results: dict) -> None:
    """Raise a UserError if a data set changes labels, which steps that make them do not."""
    if results.get('reduce_zero_label') or results.get('label_map'):
        raise UserError('reduce_zero_label has no effect on masks in colours and of COCO: remove it')


@TRANSFORMS.register_module()
class LoadColourMasks(BaseTransform):
    """Load a mask in colours as labels; in the place of ``LoadAnnotations`` of MMSegmentation.

    Colours of palettes, and gray levels, are colours, too. Adds ``gt_seg_map`` (height, width), uint8.

    Args:
        colours: red, green and blue of each class, in the order of labels.
        unknown: ``'ignore'`` gives pixels of other colours ``ignore_index``; they are refused by default.
        ignore_index: label of pixels to ignore.
        backend_args: arguments of mmengine's file backend.

    Raises:
        UserError: ``colours`` are no different colours; or a mask has another colour.
    """

    def __init__(
        self,
        colours: Sequence[Sequence[int]],
        unknown: Literal['refuse', 'ignore'] = 'refuse',
        ignore_index: int = 255,
        backend_args: dict | None = None,
    ) -> None:
        if unknown not in ('refuse', 'ignore'):
            raise UserError(f"LoadColourMasks.unknown={unknown!r} must be 'refuse' or 'ignore'")
        codes = _codes_of(colours, 'LoadColourMasks.colours')
        self.labels = np.argsort(codes).astype(np.uint8)  # of the sorted codes
        self.codes, self.unknown, self.ignore_index = np.sort(codes), unknown, ignore_index
        self.backend_args = backend_args

    def transform(self, results: dict) -> dict:
        """Add the labels to the results."""
        path = results['seg_map_path']
        check_label_options(results)
        content = BytesIO(fileio.get(path, backend_args=self.backend_args))
        check_image_size(content, path)
        with parse_errors(path), Image.open(content) as opened:
            codes = encode(np.asarray(opened.convert('RGB')))
        places = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        labels, is_unknown = self.labels[places], self.codes[places] != codes
        if is_unknown.any():
            if self.unknown == 'refuse':
                code = int(codes[is_unknown][0])
                colour = (code >> 16, code >> 8 & 255, code & 255)
                advice = "add it to colours, or set unknown='ignore'"
                raise UserError(f'{path} has the colour {colour}, which is of no class: {advice}')
            labels[is_unknown] = self.ignore_index
        return results | dict(gt_seg_map=labels, seg_fields=[*results.get('seg_fields', ()), 'gt_seg_map'])

    def __repr__(self) -> str:
        return f'LoadColourMasks({len(self.codes)} colours, unknown={self.unknown!r})'
