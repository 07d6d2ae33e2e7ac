"""Figures of where visual tokens look, or the class token of a multiscale vision transformer, over time in a video.

Letters: L tokens, H and W of a map, T frames, T' times of a map.
"""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.analysis.figures import image_cells, lay_over
from vt.errors import UserError
from vt.inference.inputs import seen_by
from vt.models import AttentionTokenizer, PoolingAttention, record_attention

CELL = 1.25  # inches


def has_pooling_attention(model: nn.Module) -> bool:
    """Whether it is the class token's attention that is drawn of a model."""
    return any(isinstance(part, PoolingAttention) for part in model.modules())


def name_part(model: nn.Module, index: int) -> str:
    """Name of a tokenizer that attends, or of a block's pooling attention, in the network's order; the last for -1.

    Raises:
        UserError: there are not so many.
    """
    pools = has_pooling_attention(model)
    kind, plural = (PoolingAttention, 'pooling attentions') if pools else (AttentionTokenizer, 'tokenizers that attend')
    names = [name for name, part in model.named_modules() if isinstance(part, kind)]
    if not -len(names) <= index < len(names):
        raise UserError(f'--module {index}: the model has {len(names)} {plural}')
    return names[index]


@torch.no_grad()
def look(model: nn.Module, tokenizer: str, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """What :func:`draw_attention` draws of one sample of a test set.

    Returns:
        The padded image, ``(3, height, width)``, and the maps of the tokenizer of that name, ``(heads, L, H, W)``.
    """
    image, inputs = seen_by(model, sample, is_bgr)
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    return image, records[tokenizer].attention[0].cpu()


def draw_attention(
    images: Sequence[Tensor],
    attention: Sequence[Tensor],
    titles: Sequence[str],
    heading: str = 'Where each visual token looks',
    columns: Sequence[str] | None = None,
) -> Figure:
    """A row an image: the image, then one column a token, glowing where the token looks.

    Each token's map, the mean over heads, runs from its weakest pixel, clear, to its strongest, bright.

    Args:
        images: RGB in 0 to 1, each ``(3, height, width)``.
        attention: a tokenizer's maps of each image, ``(heads, L, H, W)``; or other maps.
        titles: one for each image.
        heading, columns: what the figure shows, and names of the L maps; tokens by default.
    """
    names = ['image', *(columns or [f'token {number + 1}' for number in range(attention[0].shape[1])])]
    figure = Figure(figsize=(CELL * len(names), CELL * len(images) + 0.5), layout='constrained')
    axes = image_cells(figure, len(images), len(names))
    for cells, image, maps, title in zip(axes, images, attention, titles):
        cells[0].set_ylabel(title, fontsize=9, parse_math=False)
        for cell, shown in zip(cells, [image.movedim(0, -1).numpy(), *glow(image, maps.mean(dim=0))]):
            cell.imshow(shown)
    for name, cell in zip(names, axes[0]):
        cell.set_title(name, fontsize=9)
    figure.suptitle(heading, fontsize=11)
    return figure


def glow(image: Tensor, maps: Tensor) -> np.ndarray:
    """An image once for each map, dark, and glowing from the map's weakest pixel, clear, to its strongest, bright.

    Args:
        image: RGB in 0 to 1, ``(3, height, width)``.
        maps: ``(L, H, W)``, of any size.

    Returns:
        ``(L, height, width, 3)`` in 0 to 1.
    """
    maps = interpolate(maps[None], image.shape[1:], mode='bilinear')[0]  # L, height, width
    return lay_over(image, _stretch(maps, dim=(-2, -1)))


@torch.no_grad()
def look_over_time(model: nn.Module, attention: str, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """What :func:`draw_over_time` draws of one sample of a test set, the first clip of several.

    Returns:
        The frames, ``(T, 3, height, width)``, one of an image; and how much the class token takes from each place of
        the pooled grid, ``(T', H, W)``, the mean over heads, and over all tokens where there is no class token.
    """
    frames, inputs = frames_of(model, sample, is_bgr)
    with record_attention(model) as records:
        model(inputs, mode='tensor')
    grid = model.get_submodule(attention).key_size(records[attention].size)
    maps = records[attention].attention[0].mean(dim=0).cpu()  # queries, keys
    num_class_tokens = maps.shape[1] - torch.Size(grid).numel()
    rows = maps[:1] if num_class_tokens else maps
    seen = rows.mean(dim=0)[num_class_tokens:].unflatten(0, grid)
    return frames, seen[None] if seen.ndim == 2 else seen


def frames_of(model: nn.Module, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """Frames of a sample's first clip, ``(T, 3, height, width)``, and what the network gets, ``(1, 3, ...)``."""
    batch = pseudo_collate([sample])
    clip = batch['inputs'][0].float() / 255
    clip = clip[0] if clip.ndim == 5 else clip
    frames = clip[:, None] if clip.ndim == 3 else clip  # 3, T, height, width
    inputs = model.data_preprocessor(batch, False)['inputs']
    return (frames.flip(0) if is_bgr else frames).transpose(0, 1), inputs[:1]


def draw_over_time(
    clips: Sequence[Tensor], maps: Sequence[Tensor], titles: Sequence[str], heading: str = 'Where the class token looks'
) -> Figure:
    """Two rows a video: its frames, and below each the same one, glowing where the class token looks at its time.

    A video's map runs from its weakest place and time, clear, to its strongest, bright.

    Args:
        clips: RGB in 0 to 1, each ``(T, 3, height, width)``.
        maps: of each, ``(T', H, W)``.
        titles: one for each.
        heading: what the figure shows.
    """
    columns = max(len(frames) for frames in clips)
    figure = Figure(figsize=(CELL * columns + 0.5, 2 * CELL * len(clips) + 0.5), layout='constrained')
    parts = figure.subfigures(len(clips), 1, squeeze=False)[:, 0]
    for part, frames, seen, title in zip(parts, clips, maps, titles):
        part.suptitle(title, x=0.01, horizontalalignment='left', fontsize=9, parse_math=False)
        seen = interpolate(seen[None, None], (len(frames), *frames.shape[2:]), mode='trilinear')[0, 0]
        shown = frames.movedim(1, -1).numpy(), lay_over(frames, _stretch(seen, dim=(0, 1, 2)))
        for cells, images in zip(image_cells(part, 2, columns), shown):
            for cell, image in zip(cells, images):
                cell.imshow(image)
    figure.suptitle(heading, fontsize=11)
    return figure


def _stretch(maps: Tensor, dim: tuple[int, ...]) -> Tensor:
    """Maps from 0, their weakest place over some dimensions, to 1, their strongest."""
    low, high = maps.amin(dim, keepdim=True), maps.amax(dim, keepdim=True)
    return (maps - low) / (high - low).clamp(min=torch.finfo(maps.dtype).tiny)
