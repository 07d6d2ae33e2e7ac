"""The reach of an attention: from which places of the grid one token takes what it becomes.

Letters: N batch, K class tokens, P = H * W tokens of the grid, C channels.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError

CELL = 1.5  # inches
COLUMNS = 8
NONE = 1e-9  # of the strongest place; what is less is rounding


class Reach(NamedTuple):
    """What one token of a block sees.

    Attributes:
        title: the model, and where in it the block stands.
        strengths: of each place, ``(H, W)``, 1 for the strongest and 0 where nothing is seen.
        place: row and column of the token; None for the class token.
    """

    title: str
    strengths: Tensor
    place: tuple[int, int] | None


def measure_reaches(
    backbone: nn.Module, image: Tensor, name: str, stage: int, place: tuple[float, float]
) -> list[Reach]:
    """The reach of each block of a stage that differs from those before it.

    Args:
        backbone: of blocks with an attention, :class:`vt.models.TokenBackbone`.
        image: ``(1, 3, height, width)``, as the backbone takes it.
        name: of the model, for the titles.
        stage: number of the stage; the last one where there are fewer.
        place: of the token whose reach it is, row and column in parts of the grid, 0 to 1.

    Raises:
        UserError: the backbone has no such stages.
    """
    stages = [each for each in getattr(backbone, 'stages', []) if hasattr(each, 'blocks') and len(each.blocks)]
    if not stages:
        raise UserError(f'{type(backbone).__name__} has no stages of blocks; reach is read from vt.TokenBackbone')
    stage = min(stage, len(stages) - 1)
    parts = [block.attention.part for block in stages[stage].blocks]
    inputs: dict[nn.Module, tuple] = {}
    hooks = [part.register_forward_pre_hook(lambda part, args: inputs.update({part: args})) for part in parts]
    try:
        with torch.no_grad():
            backbone(image)
    finally:
        for hook in hooks:
            hook.remove()
    reaches: list[Reach] = []
    for index, part in enumerate(parts):
        strengths, cell = measure_reach(part, *inputs[part], place)
        if not any(torch.equal(each.strengths > 0, strengths > 0) for each in reaches):
            reaches.append(Reach(f'{name}\nstage {stage + 1}, block {index + 1}', strengths, cell))
    return reaches


@torch.enable_grad()
def measure_reach(
    part: nn.Module, x: Tensor, size: tuple[int, int], place: tuple[float, float]
) -> tuple[Tensor, tuple[int, int] | None]:
    """How much one token of an attention's result changes with each token that comes, by the gradient of a random sum.

    Args:
        part: called with ``(x, size)``.
        x: ``(1, K + P, C)``.
        size: H and W.
        place: of the token, as in :func:`measure_reaches`; of an attention of class tokens alone it is the first one.

    Returns:
        ``(H, W)``, the norm over the channels in parts of the largest; and the row and column of the token.
    """
    x = x.detach().double().requires_grad_()
    part = part.double()
    result = part(x, size)
    out_size = part.out_size(size) if hasattr(part, 'out_size') else size
    num_class_tokens = result.shape[1] - math.prod(out_size)
    cell = tuple(min(side - 1, int(share * side)) for share, side in zip(place, out_size))
    index = 0 if num_class_tokens < 0 else num_class_tokens + cell[0] * out_size[1] + cell[1]
    directions = torch.randn(result.shape[-1], generator=torch.Generator().manual_seed(0), dtype=result.dtype)
    (gradient,) = torch.autograd.grad((result[0, index] * directions).sum(), x)
    strengths = gradient[0, -math.prod(size) :].norm(dim=-1).unflatten(0, size)
    part.float()
    strengths = strengths / strengths.max()
    shown = (
        None
        if num_class_tokens < 0
        else tuple(int((own + 0.5) * all_ / out) for own, all_, out in zip(cell, size, out_size))
    )
    return strengths.where(strengths > NONE, 0).float(), shown


def draw_reaches(image: Tensor, reaches: Sequence[Reach]) -> Figure:
    """A cell a reach: the image where it is seen, glowing where it counts for more; a square stands on the token.

    Args:
        image: RGB in 0 to 1, ``(3, height, width)``.
        reaches: as :func:`measure_reaches` gives them.
    """
    rows = -(-len(reaches) // COLUMNS)
    columns = min(COLUMNS, len(reaches))
    figure = Figure(figsize=(CELL * columns, (CELL + 0.35) * rows), layout='constrained')
    axes = figure.subplots(rows, columns, squeeze=False)
    pixels, sides = image.permute(1, 2, 0).numpy(), image.shape[1:]
    for cell, reach in zip(axes.flat, reaches):
        strengths = interpolate(reach.strengths[None, None], sides, mode='nearest')[0, 0].numpy()
        cell.imshow(pixels * (0.15 + 0.85 * (strengths > 0))[..., None])
        cell.imshow(strengths, cmap='inferno', alpha=0.7 * strengths**0.5, vmin=0, vmax=1)
        cell.set_title(reach.title, fontsize=7)
        if reach.place is not None:
            scales = [side / own for side, own in zip(sides, reach.strengths.shape)]
            row, column = ((own + 0.5) * scale for own, scale in zip(reach.place, scales))
            cell.plot(column, row, marker='s', markersize=3, color='white', markeredgecolor='black')
    for cell in axes.flat:
        cell.set(xticks=[], yticks=[])
        cell.spines[:].set_visible(False)
        cell.axis('on' if cell.images else 'off')
    return figure
