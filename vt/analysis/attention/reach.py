"""The reach of an attention: from which places of the grid one token takes what it becomes.

Letters: N batch, K class tokens, P = H * W tokens of the grid, C channels.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.analysis.figures import image_cells
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
    parts = dict(enumerate(block.attention.part for block in stages[stage].blocks))
    inputs = recorded_inputs(backbone, parts, image)
    reaches: list[Reach] = []
    for index, part in parts.items():
        strengths, cell = measure_reach(part, *inputs[index], place)
        if not any(torch.equal(each.strengths > 0, strengths > 0) for each in reaches):
            reaches.append(Reach(f'{name}\nstage {stage + 1}, block {index + 1}', strengths, cell))
    return reaches


def measure_reach(
    part: nn.Module, x: Tensor, size: tuple[int, int], place: tuple[float, float]
) -> tuple[Tensor, tuple[int, int] | None]:
    """How much one token of an attention's result changes with each token that comes, see :func:`influences`.

    Args:
        part: called with ``(x, size)``.
        x: ``(1, K + P, C)``.
        size: H and W.
        place: of the token, as in :func:`measure_reaches`; of an attention of class tokens alone it is the first one.

    Returns:
        ``(H, W)``, in parts of the largest; and the row and column of the token.
    """
    part, args = part.double(), (x.double(), size)
    out_size = grids(part, args)[1]
    with torch.no_grad():
        is_of_classes = part(*args).shape[1] < math.prod(out_size)
    row, column = (min(side - 1, int(share * side)) for share, side in zip(place, out_size))
    strengths = influences(part, args, [None if is_of_classes else row * out_size[1] + column])[0].unflatten(0, size)
    part.float()
    strengths = strengths / strengths.max()
    shown = tuple(int((own + 0.5) * side / out) for own, side, out in zip((row, column), size, out_size))
    return strengths.where(strengths > NONE, 0).float(), None if is_of_classes else shown


@torch.enable_grad()
def influences(part: Callable, args: tuple, places: Sequence[int | None]) -> Tensor:
    """How much some places of a part's result change with each place that comes, by the gradient of a random sum.

    Args:
        part: called with ``args``; of several results the first counts.
        args: of one image: a map ``(1, C, H, W)`` or tokens ``(1, K + P, C)`` first; what follows is held fixed.
        places: of the result's grid, counted row by row; None is the first class token.

    Returns:
        ``(len(places), P)``, the norm over the channels that come.
    """
    size, out_size = grids(part, args)
    number = len(places)
    x = args[0].detach().repeat_interleave(number, dim=0).requires_grad_()
    fixed = [each.detach().repeat_interleave(number, dim=0) if isinstance(each, Tensor) else each for each in args[1:]]
    result = part(x, *fixed)
    tokens = _as_tokens(result[0] if isinstance(result, tuple) else result)
    classes = max(0, tokens.shape[1] - math.prod(out_size))
    rows = [0 if place is None else classes + place for place in places]
    directions = torch.randn(tokens.shape[-1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((tokens[range(number), rows] @ directions.to(tokens)).sum(), x)
    return _as_tokens(gradient)[:, -math.prod(size) :].norm(dim=-1)


def grids(part: Callable, args: tuple) -> tuple[tuple[int, int], tuple[int, int]]:
    """H and W of the grid that comes to a part and of the one that leaves it; of tokens the size is the second arg."""
    size = tuple(args[0].shape[-2:]) if args[0].dim() == 4 else tuple(args[1])
    return size, part.out_size(size) if hasattr(part, 'out_size') else size


@torch.no_grad()
def recorded_inputs(model: nn.Module, parts: dict, images: Tensor) -> dict:
    """What comes to each part of a model in a forward pass, by the parts' keys."""
    inputs: dict = {}
    hooks = [
        part.register_forward_pre_hook(lambda _, args, key=key: inputs.update({key: args}))
        for key, part in parts.items()
    ]
    try:
        model(images)
    finally:
        for hook in hooks:
            hook.remove()
    return {key: inputs[key] for key in parts}


def _as_tokens(x: Tensor) -> Tensor:
    """A map ``(N, C, H, W)`` as tokens ``(N, P, C)``; tokens as they are."""
    return x.flatten(2).transpose(1, 2) if x.dim() == 4 else x


def draw_reaches(image: Tensor, reaches: Sequence[Reach]) -> Figure:
    """A cell a reach: the image where it is seen, glowing where it counts for more; a square stands on the token.

    Args:
        image: RGB in 0 to 1, ``(3, height, width)``.
        reaches: as :func:`measure_reaches` gives them.
    """
    rows, columns = -(-len(reaches) // COLUMNS), min(COLUMNS, len(reaches))
    figure = Figure(figsize=(CELL * columns, (CELL + 0.35) * rows), layout='constrained')
    pixels, sides = image.permute(1, 2, 0).numpy(), image.shape[1:]
    for cell, reach in zip(image_cells(figure, rows, columns).flat, reaches):
        strengths = interpolate(reach.strengths[None, None], sides, mode='nearest')[0, 0].numpy()
        cell.imshow(pixels * (0.15 + 0.85 * (strengths > 0))[..., None])
        cell.imshow(strengths, cmap='inferno', alpha=0.7 * strengths**0.5, vmin=0, vmax=1)
        cell.set_title(reach.title, fontsize=7)
        if reach.place is not None:
            row, column = (
                (own + 0.5) * side / cells for own, side, cells in zip(reach.place, sides, reach.strengths.shape)
            )
            cell.plot(column, row, marker='s', markersize=3, color='white', markeredgecolor='black')
    return figure
