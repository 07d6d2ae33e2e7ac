"""Figures of the attention of visual tokens, and of the class token of a multiscale vision transformer over time.

Letters: L tokens, H and W size of a map, T frames, T' time steps of a map.
"""

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.analysis.figures import image_cells
from vt.errors import UserError
from vt.inference.inputs import model_input
from vt.models import AttentionTokenizer, PoolingAttention, record_attention

CELL, NOTE = 1.25, 0.2  # inches of a cell, and of a line of text
LINE = 16  # characters beside a cell
WIDTH = 12  # characters of the heading an inch
FLOOR = 2  # times uniform, the least value at which a map is brightest
SCALE = f'Black is 0; the brightest colour is the maximum of a map, at least {FLOOR} times uniform.'
RANGES = 'Ranges are multiples of uniform.'


def name_part(model: nn.Module, index: int) -> str:
    """Return the name of a tokenizer, or of a pooling attention of MViT, by its index in the network; -1 is the last.

    Raises:
        UserError: the index does not exist.
    """
    pools = any(isinstance(part, PoolingAttention) for part in model.modules())
    kind, plural = (PoolingAttention, 'pooling attentions') if pools else (AttentionTokenizer, 'attention tokenizers')
    names = [name for name, part in model.named_modules() if isinstance(part, kind)]
    if not -len(names) <= index < len(names):
        raise UserError(f'--module {index} does not exist: the model has {len(names)} {plural}, counted from 0')
    return names[index]


@torch.no_grad()
def look(model: nn.Module, name: str, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """Compute the images and the maps of a part for a figure of one sample of a test set; of several clips, the first.

    Returns:
        For :func:`draw_attention`, of a tokenizer the padded image, ``(3, height, width)``, and maps, ``(L, H, W)``. Of
        a pooling attention the frames, ``(T, 3, height, width)``, one for an image, and the attention weights of the
        class token over the pooled grid, ``(1, T', H, W)``, or of all tokens if there is no class token. Maps are
        averaged over heads.
    """
    part = model.get_submodule(name)
    images, inputs = model_input(model, sample, is_bgr)
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    maps = records[name].attention[0].cpu()
    if isinstance(part, PoolingAttention):
        grid = part.key_size(records[name].size)
        num_class_tokens = maps.shape[-1] - math.prod(grid)
        rows = maps[:, :1] if num_class_tokens else maps  # heads, queries, keys
        maps = rows.mean(dim=1)[:, num_class_tokens:].unflatten(1, grid)  # heads, H, W or heads, T', H, W
        if images.ndim == 3:
            images, maps = images[None], maps[:, None]
        return images, maps.mean(dim=0)[None]
    return images, maps.mean(dim=0)


def draw_attention(
    images: Sequence[Tensor],
    attention: Sequence[Tensor],
    titles: Sequence[str],
    heading: str,
    names: Sequence[str] | None = None,
) -> Figure:
    """Draw a row per image: the image, then a column per map, which is overlaid by :func:`glow`, and its range.

    A video is a row of frames, and below them a row per map, whose scale is that of all frames.

    Args:
        images: RGB in 0 to 1, each ``(3, height, width)``, or videos, each ``(T, 3, height, width)``.
        attention: maps of each image, ``(L, H, W)``, or of each video, ``(L, T', H, W)``.
        titles: title of each image.
        heading: title of the figure.
        names: names of the L maps; by default numbers of tokens for images, and none for videos.
    """
    rows, labels, notes = [], [], []
    for image, maps, title in zip(images, attention, titles):
        maps = times_uniform(maps, maps[0].ndim)
        if image.ndim == 3:
            rows.append([image.movedim(0, -1).numpy(), *glow(image, maps)])
            labels.append(title)
            notes.append(['', *describe_ranges(maps)])
        else:
            seen = interpolate(maps[None], (len(image), *image.shape[2:]), mode='trilinear')[0]
            rows += [image.movedim(1, -1).numpy(), *(glow(image, each, dim=(0, 1, 2)) for each in seen)]
            labels += [title, *(names or [''] * len(maps))]
            notes += [[''], *([each] for each in describe_ranges(maps))]
    columns = max(map(len, rows))
    size = CELL * columns, (CELL + NOTE) * len(rows)
    heading = '\n'.join(fill(part, int(WIDTH * size[0])) for part in (heading, f'{SCALE} {RANGES}'))
    size = size[0], size[1] + NOTE * len(heading.splitlines())
    figure = Figure(figsize=size, layout='constrained')
    for cells, row, label, ranges in zip(image_cells(figure, len(rows), columns), rows, labels, notes):
        lines = '\n'.join(fill(part, LINE) for part in label.split(', '))  # file name, class
        cells[0].set_ylabel(lines, fontsize=9, parse_math=False)
        for cell, pixels in zip(cells, row):
            cell.imshow(pixels)
        for cell, note in zip(cells, ranges):
            cell.set_xlabel(note, fontsize=8)
    if images[0].ndim == 3:
        names = names or [f'token {number + 1}' for number in range(len(attention[0]))]
        for name, cell in zip(['image', *names], figure.axes):
            cell.set_title(name, fontsize=9)
    figure.suptitle(heading, fontsize=10)
    return figure


def times_uniform(maps: Tensor, dims: int = 2) -> Tensor:
    """Divide maps by their mean over the last dimensions, which a map that looks everywhere alike has everywhere."""
    mean = maps.mean(dim=tuple(range(-dims, 0)), keepdim=True)
    return maps / mean.clamp(min=torch.finfo(maps.dtype).tiny)


def describe_ranges(maps: Tensor) -> list[str]:
    """Return the minimum and maximum of each map ``(L, ...)``, such as ``0.90 to 1.11``."""
    return [f'{least:.2f} to {most:.2f}' for least, most in (each.aminmax() for each in maps)]


def glow(images: Tensor, maps: Tensor, dim: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """Overlay maps on darkened images, from 0 (transparent) to the maximum, at least twice uniform (bright).

    Without that floor, the noise of a map that looks everywhere alike would be stretched to a contrast.

    Args:
        images: RGB in 0 to 1, ``(3, height, width)``, or one for each map, ``(L, 3, height, width)``.
        maps: multiples of uniform, see :func:`times_uniform`, ``(L, H, W)``, of any size.
        dim: dimensions of the maximum.

    Returns:
        An image per map, RGB uint8, ``(L, height, width, 3)``.
    """
    maps = interpolate(maps[None], images.shape[-2:], mode='bilinear')[0]  # L, height, width
    brightness = (maps / maps.amax(dim, keepdim=True).clamp(min=FLOOR)).clamp(min=0).numpy()
    opacity = 0.85 * brightness[..., None]
    colours = colormaps['inferno'](brightness)[..., :3]
    return (255 * ((1 - opacity) * 0.6 * images.movedim(-3, -1).numpy() + opacity * colours)).astype(np.uint8)
