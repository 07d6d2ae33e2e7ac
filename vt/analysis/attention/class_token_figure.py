"""Pictures of where a multiscale vision transformer looks, over the frames of a video or on an image."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.models import PoolingAttention, record_attention

from .token_figure import CELL, name_part


def has_pooling_attention(model: nn.Module) -> bool:
    """Whether a model is one to be drawn here."""
    return any(isinstance(part, PoolingAttention) for part in model.modules())


def name_attention(model: nn.Module, index: int) -> str:
    """Name of a block's attention, in the order of the network; of the last one for -1.

    Raises:
        UserError: there are not so many.
    """
    return name_part(model, PoolingAttention, index, 'pooling attentions')


@torch.no_grad()
def look_over_time(model: nn.Module, attention: str, sample: dict, is_bgr: bool) -> tuple[Tensor, Tensor]:
    """What :func:`draw_over_time` draws of one sample of a test set, the first clip of several.

    Returns:
        The frames, ``(T, 3, height, width)``, one of an image; and how much the class token takes from each place of
        the pooled grid, ``(T', H', W')``, the mean over heads, and over all tokens where there is no class token.
    """
    batch = pseudo_collate([sample])
    clip = batch['inputs'][0].float() / 255
    clip = clip[0] if clip.ndim == 5 else clip
    frames = clip[:, None] if clip.ndim == 3 else clip  # 3, T, height, width
    inputs = model.data_preprocessor(batch, False)['inputs']
    with record_attention(model) as records:
        model(inputs[:1], mode='tensor')
    grid = model.get_submodule(attention).key_size(records[attention].size)
    maps = records[attention].attention[0].mean(dim=0).cpu()  # queries, keys
    num_class_tokens = maps.shape[1] - torch.Size(grid).numel()
    rows = maps[:1] if num_class_tokens else maps
    seen = rows.mean(dim=0)[num_class_tokens:].unflatten(0, grid)
    return (frames.flip(0) if is_bgr else frames).transpose(0, 1), seen[None] if seen.ndim == 2 else seen


def draw_over_time(clips: Sequence[Tensor], maps: Sequence[Tensor], titles: Sequence[str]) -> Figure:
    """Two rows a video: its frames, and below each the same one, glowing where the class token looks at its time.

    A video's map runs from its weakest place and time, clear, to its strongest, bright.

    Args:
        clips: RGB in 0 to 1, each ``(T, 3, height, width)``.
        maps: of each, ``(T', H', W')``.
        titles: one for each.
    """
    columns = max(len(frames) for frames in clips)
    figure = Figure(figsize=(CELL * columns + 0.5, 2 * CELL * len(clips) + 0.5), layout='constrained')
    parts = figure.subfigures(len(clips), 1, squeeze=False)[:, 0]
    for part, frames, seen, title in zip(parts, clips, maps, titles):
        axes = part.subplots(2, columns, squeeze=False)
        seen = interpolate(seen[None, None], (len(frames), *frames.shape[2:]), mode='trilinear')[0, 0]
        seen = ((seen - seen.min()) / (seen.max() - seen.min()).clamp(min=torch.finfo(seen.dtype).tiny)).numpy()
        part.suptitle(title, x=0.01, horizontalalignment='left', fontsize=9, parse_math=False)
        for above, below, frame, bright in zip(*axes, frames, seen):
            pixels = frame.permute(1, 2, 0).numpy()
            above.imshow(pixels)
            below.imshow(0.6 * pixels)
            below.imshow(bright, cmap='inferno', alpha=0.85 * bright, vmin=0, vmax=1)
        for cell in axes.flat:
            cell.set(xticks=[], yticks=[])
            cell.spines[:].set_visible(False)
    figure.suptitle('Where the class token looks', fontsize=11)
    return figure
