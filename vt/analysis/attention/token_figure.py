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
from mmengine.dataset import pseudo_collate
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
    images, inputs = (frames_of if pools else seen_by)(model, sample, is_bgr)
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    maps = records[name].attention[0].cpu()
    if pools:
        grid = part.key_size(records[name].size)
        num_class_tokens = maps.shape[-1] - math.prod(grid)
        rows = maps[:, :1] if num_class_tokens else maps  # heads, queries, keys
        maps = rows.mean(dim=(0, 1))[num_class_tokens:].unflatten(0, grid)
        maps = maps[None] if maps.ndim == 2 else maps
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
    figure = Figure(figsize=(CELL * len(names), CELL * len(images) + 0.5), layout='constrained')
    axes = image_cells(figure, len(images), len(names))
    for cells, image, maps, title in zip(axes, images, attention, titles):
        label = '\n'.join(fill(part, LINE) for part in title.split(', '))  # file name, class
        cells[0].set_ylabel(label, fontsize=9, parse_math=False)
        for cell, shown in zip(cells, [image.movedim(0, -1).numpy(), *glow(image, maps.mean(dim=0))]):
            cell.imshow(shown)
    for name, cell in zip(names, axes[0]):
        cell.set_title(name, fontsize=9)
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


def frames_of(model: nn.Module, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """Return frames of a sample's first clip, ``(T, 3, height, width)``, and the network's input, ``(1, 3, ...)``."""
    batch = pseudo_collate([sample])
    clip = batch['inputs'][0].float() / 255
    clip = clip[0] if clip.ndim == 5 else clip
    frames = clip[:, None] if clip.ndim == 3 else clip  # 3, T, height, width
    inputs = model.data_preprocessor(batch, False)['inputs']
    return (frames.flip(0) if is_bgr else frames).transpose(0, 1), inputs[:1]


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
    columns = max(len(frames) for frames in clips)
    figure = Figure(figsize=(CELL * columns + 0.5, 2 * CELL * len(clips) + 0.5), layout='constrained')
    parts = figure.subfigures(len(clips), 1, squeeze=False)[:, 0]
    for part, frames, seen, title in zip(parts, clips, maps, titles):
        part.suptitle(title, x=0.01, horizontalalignment='left', fontsize=9, parse_math=False)
        seen = interpolate(seen[None, None], (len(frames), *frames.shape[2:]), mode='trilinear')[0, 0]
        shown = frames.movedim(1, -1).numpy(), glow(frames, seen, dim=(0, 1, 2))
        for cells, images in zip(image_cells(part, 2, columns), shown):
            for cell, image in zip(cells, images):
                cell.imshow(image)
    figure.suptitle(heading, fontsize=11)
    return figure
