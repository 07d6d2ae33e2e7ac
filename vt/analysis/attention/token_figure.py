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
from vt.inference.inputs import seen_by
from vt.models import AttentionTokenizer, PoolingAttention, record_attention

CELL = 1.25  # inches
LINE = 16  # characters beside a cell


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
        Of a tokenizer for :func:`draw_attention`: the padded image, ``(3, height, width)``, and maps, ``(heads, L, H,
        W)``. Of a pooling attention for :func:`draw_over_time`: the frames, ``(T, 3, height, width)``, one for an
        image, and the attention weights of the class token over the pooled grid, ``(T', H, W)``, averaged over heads,
        and over all tokens if there is no class token.
    """
    part = model.get_submodule(name)
    pools = isinstance(part, PoolingAttention)
    images, inputs = seen_by(model, sample, is_bgr)
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    maps = records[name].attention[0].cpu()
    if pools:
        grid = part.key_size(records[name].size)
        num_class_tokens = maps.shape[-1] - math.prod(grid)
        rows = maps[:, :1] if num_class_tokens else maps  # heads, queries, keys
        maps = rows.mean(dim=(0, 1))[num_class_tokens:].unflatten(0, grid)
        if images.ndim == 3:
            return images[None], maps[None]
    return images, maps


def draw_attention(
    images: Sequence[Tensor],
    attention: Sequence[Tensor],
    titles: Sequence[str],
    heading: str = 'Where each visual token looks',
    columns: Sequence[str] | None = None,
) -> Figure:
    """Draw a row per image: the image, then one column per token with its attention map overlaid.

    Maps are averaged over heads, and each is scaled to its own minimum (transparent) and maximum (bright).

    Args:
        images: RGB in 0 to 1, each ``(3, height, width)``.
        attention: maps of a tokenizer for each image, ``(heads, L, H, W)``, or other maps.
        titles: title of each image.
        heading, columns: title of the figure and names of the L maps; by default those of tokens.
    """
    names = ['image', *(columns or [f'token {number + 1}' for number in range(attention[0].shape[1])])]
    rows = [[image.movedim(0, -1).numpy(), *glow(image, maps.mean(dim=0))] for image, maps in zip(images, attention)]
    figure = _draw(rows, titles, heading)
    for name, cell in zip(names, figure.axes):
        cell.set_title(name, fontsize=9)
    return figure


def draw_over_time(
    clips: Sequence[Tensor], maps: Sequence[Tensor], titles: Sequence[str], heading: str = 'Where the class token looks'
) -> Figure:
    """Draw two rows per video: its frames, and below them the frames with the attention of the class token overlaid.

    The map of a video is scaled to its minimum (transparent) and maximum (bright) over space and time.

    Args:
        clips: RGB in 0 to 1, each ``(T, 3, height, width)``.
        maps: attention of each video, ``(T', H, W)``.
        titles: title of each video.
        heading: title of the figure.
    """
    rows, labels = [], []
    for frames, seen, title in zip(clips, maps, titles):
        seen = interpolate(seen[None, None], (len(frames), *frames.shape[2:]), mode='trilinear')[0, 0]
        rows += [frames.movedim(1, -1).numpy(), glow(frames, seen, dim=(0, 1, 2))]
        labels += [title, '']
    return _draw(rows, labels, heading)


def _draw(rows: Sequence[Sequence], titles: Sequence[str], heading: str) -> Figure:
    """Draw rows of images ``(height, width, 3)``, each with its title on the left."""
    columns = max(map(len, rows))
    figure = Figure(figsize=(CELL * columns, CELL * len(rows) + 0.5), layout='constrained')
    for cells, images, title in zip(image_cells(figure, len(rows), columns), rows, titles):
        label = '\n'.join(fill(part, LINE) for part in title.split(', '))  # file name, class
        cells[0].set_ylabel(label, fontsize=9, parse_math=False)
        for cell, image in zip(cells, images):
            cell.imshow(image)
    figure.suptitle(heading, fontsize=11)
    return figure


def glow(images: Tensor, maps: Tensor, dim: tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """Overlay maps on darkened images, each scaled to its own minimum (transparent) and maximum (bright).

    Args:
        images: RGB in 0 to 1, ``(3, height, width)``, or one for each map, ``(L, 3, height, width)``.
        maps: ``(L, H, W)``, of any size.
        dim: dimensions of the minimum and the maximum.

    Returns:
        An image per map, RGB uint8, ``(L, height, width, 3)``.
    """
    maps = interpolate(maps[None], images.shape[-2:], mode='bilinear')[0]  # L, height, width
    low, high = maps.amin(dim, keepdim=True), maps.amax(dim, keepdim=True)
    brightness = ((maps - low) / (high - low).clamp(min=torch.finfo(maps.dtype).tiny)).numpy()
    opacity = 0.85 * brightness[..., None]
    colours = colormaps['inferno'](brightness)[..., :3]
    return (255 * ((1 - opacity) * 0.6 * images.movedim(-3, -1).numpy() + opacity * colours)).astype(np.uint8)
