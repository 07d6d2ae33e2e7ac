"""Annotations of COCO: the JSON file, and the step of pipelines that draws its polygons and run lengths as masks."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform

from vt.errors import UserError
from vt.files import parse_errors, read_json
from vt.image_bounds import max_pixels
from vt.registry import TRANSFORMS
from vt.untrusted_text import check_class_names, composed, folded

from .colour_masks import check_label_options

BACKGROUND = 'background'
HINT = 'it must be a JSON file of COCO with images, annotations and categories'
SHAPE = dict(
    images=[dict(id=int | str, file_name=str, height=int, width=int)],
    annotations=[dict(image_id=int | str, category_id=int, segmentation=list | dict | None)],
    categories=[dict(id=int, name=str)],
)


def read_coco(path: str) -> dict[str, Any]:
    """Read a JSON file of COCO; a UserError says what it lacks."""
    content = read_json(Path(path), HINT, keys=tuple(SHAPE), shape=SHAPE)
    for key, shape in SHAPE.items():
        needed = shape[0].keys() - {'segmentation'}
        if lacking := next((needed - item.keys() for item in content[key] if needed - item.keys()), None):
            raise UserError(f'{path} has {key} without {min(lacking)}: {HINT}')
    if not content['images']:
        raise UserError(f'{path} lists no images')
    return content


def read_categories(content: dict[str, Any], path: str) -> tuple[list[str], dict[int, int]]:
    """Return class names, and labels by the ids of categories, which are in the order of ids.

    Label 0 is ``background``, unless a category has this name.

    Raises:
        UserError: two categories have the same id or name.
    """
    categories = sorted(content['categories'], key=lambda category: category['id'])
    names = [composed(category['name']) for category in categories]
    if not any(folded(name) == BACKGROUND for name in names):
        names = [BACKGROUND, *names]
    if len({*names}) < len(names) or len({category['id'] for category in categories}) < len(categories):
        raise UserError(f'{path} has two categories with the same name or id')
    if len(names) > 255:
        raise UserError(f'{path} has {len(names)} classes with the background, but masks have at most 255')
    first = len(names) - len(categories)
    check_class_names(names, f'the categories of {path}')
    return names, {category['id']: label for label, category in enumerate(categories, first)}


@TRANSFORMS.register_module()
class LoadCocoMasks(BaseTransform):
    """Draw annotations of :class:`vt.CocoMasks` as labels; in the place of ``LoadAnnotations`` of MMSegmentation.

    A pixel is in a polygon if its centre is. Where annotations overlap, smaller ones are drawn over larger ones, and of
    equal ones the later one over the earlier one. Pixels without annotation are background. Adds ``gt_seg_map``
    (height, width), uint8.

    Raises:
        UserError: an annotation cannot be drawn, or the image has another size than the file states.
    """

    def transform(self, results: dict) -> dict:
        """Add the labels to the results."""
        path, size = results['img_path'], tuple(results['annotated_size'])
        check_label_options(results)
        if tuple(results.get('ori_shape') or size) != size:
            own, listed = ('x'.join(map(str, sides)) for sides in (results['ori_shape'], size))
            raise UserError(f'{path} has {own} pixels, but {listed} in its annotations')
        with parse_errors(f'the annotations of {path}'):
            labels = draw_labels(results['segments'], size, results['background'])
        return results | dict(gt_seg_map=labels, seg_fields=[*results.get('seg_fields', ()), 'gt_seg_map'])


Piece = tuple[slice, slice, np.ndarray]  # rows and columns of an image, and which of their pixels belong to a segment


def draw_labels(segments: list[tuple[int, Any]], size: tuple[int, int], background: int) -> np.ndarray:
    """Draw labels with their segments, polygons or run lengths, smaller ones over larger ones."""
    if math.prod(size) > max_pixels() or min(size) < 1:
        raise UserError(f'there are no images of {size[0]}x{size[1]} pixels')
    labels, drawn = np.full(size, background, np.uint8), []
    for label, segment in segments:
        pieces = [fill_run_lengths(segment, size)] if isinstance(segment, dict) else []
        pieces = pieces or [fill_polygon(np.array(polygon, np.float64), size) for polygon in segment]
        drawn.append((sum(int(inside.sum()) for _, _, inside in pieces), label, pieces))
    for _, label, pieces in sorted(drawn, key=lambda each: -each[0]):
        for rows, columns, inside in pieces:
            labels[rows, columns][inside] = label
    return labels


def fill_polygon(points: np.ndarray, size: tuple[int, int]) -> Piece:
    """Return the pixels whose centres are in a polygon ``(x0, y0, x1, y1, ...)``, by the even-odd rule."""
    if points.ndim != 1 or len(points) < 6 or len(points) % 2 or not np.isfinite(points).all():
        raise UserError('a polygon must have x and y of at least three points')
    x, y = points.reshape(-1, 2).T  # (points,)
    next_x, next_y = np.roll(x, -1), np.roll(y, -1)
    (left, right), (top, bottom) = (
        np.clip((math.floor(line.min()), math.ceil(line.max())), 0, side).tolist()
        for line, side in ((x, size[1]), (y, size[0]))
    )
    centres = np.arange(top, bottom) + 0.5
    edges, rows = ((y[:, None] <= centres) != (next_y[:, None] <= centres)).nonzero()  # an edge crosses a row
    crossings = x[edges] + (centres[rows] - y[edges]) * (next_x - x)[edges] / (next_y - y)[edges]
    columns = np.clip(np.ceil(crossings - 0.5), left, right).astype(int) - left
    changes = np.zeros((bottom - top, right - left + 1), np.int32)
    np.add.at(changes, (rows, columns), 1)
    return slice(top, bottom), slice(left, right), changes.cumsum(axis=1)[:, :-1] % 2 == 1


def fill_run_lengths(segment: dict, size: tuple[int, int]) -> Piece:
    """Return the pixels of run lengths, ``counts`` of pixels outside and inside in turn, down the columns."""
    counts = segment['counts']
    counts = np.array(decode_counts(counts) if isinstance(counts, str) else counts, np.int64)
    if tuple(segment['size']) != size or (counts < 0).any() or counts.sum() != math.prod(size):
        raise UserError(f'run lengths must cover the {size[0]}x{size[1]} pixels of the image')
    inside = np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(size[::-1]).T
    return slice(None), slice(None), inside


def decode_counts(text: str) -> list[int]:
    """Decode the text of run lengths: 5 bits per letter; from the fourth on they are differences from two before."""
    counts: list[int] = []
    value = shift = 0
    for letter in text.encode():
        bits = letter - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:  # the last letter of a number, whose highest bit is the sign
            value -= (1 << shift) if bits & 16 else 0
            counts.append(value + (counts[-2] if len(counts) > 2 else 0))
            value = shift = 0
    return counts
