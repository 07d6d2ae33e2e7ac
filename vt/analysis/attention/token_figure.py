"""Pictures of where visual tokens look."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.inference.inputs import seen_by
from vt.models import AttentionTokenizer, record_attention

CELL = 1.25  # inches


def name_tokenizer(model: nn.Module, index: int) -> str:
    """Name of a tokenizer that attends, in the order of the network; of the last one for -1.

    Raises:
        UserError: there are not so many.
    """
    return name_part(model, AttentionTokenizer, index, 'tokenizers that attend')


def name_part(model: nn.Module, kind: type[nn.Module], index: int, plural: str) -> str:
    """Name of a part of a kind, in the order of the network; of the last one for -1.

    Raises:
        UserError: there are not so many; the line calls them by ``plural``.
    """
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


def draw_attention(images: Sequence[Tensor], attention: Sequence[Tensor], titles: Sequence[str]) -> Figure:
    """A row an image: the image, then one column a token, glowing where the token looks.

    Each token's map, the mean over heads, runs from its weakest pixel, clear, to its strongest, bright.

    Args:
        images: RGB in 0 to 1, each ``(3, height, width)``.
        attention: a tokenizer's maps of each image, ``(heads, L, H, W)``.
        titles: one for each image.
    """
    rows, columns = len(images), 1 + attention[0].shape[1]
    figure = Figure(figsize=(CELL * columns, CELL * rows + 0.5), layout='constrained')
    axes = figure.subplots(rows, columns, squeeze=False)
    for cells, image, maps, title in zip(axes, images, attention, titles):
        pixels = image.permute(1, 2, 0).numpy()
        cells[0].imshow(pixels)
        cells[0].set_ylabel(title, fontsize=9, parse_math=False)
        for cell, glowing in zip(cells[1:], glow(image, maps.mean(dim=0))):
            cell.imshow(glowing)
    for column, cell in enumerate(axes[0]):
        cell.set_title(f'token {column}' if column else 'image', fontsize=9)
    for cell in axes.flat:
        cell.set(xticks=[], yticks=[])
        cell.spines[:].set_visible(False)
    figure.suptitle('Where each visual token looks', fontsize=11)
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
    low, high = maps.amin(dim=(-2, -1), keepdim=True), maps.amax(dim=(-2, -1), keepdim=True)
    bright = ((maps - low) / (high - low).clamp(min=torch.finfo(maps.dtype).tiny)).numpy()
    opacity = 0.85 * bright[..., None]
    return (1 - opacity) * 0.6 * image.permute(1, 2, 0).numpy() + opacity * colormaps['inferno'](bright)[..., :3]
