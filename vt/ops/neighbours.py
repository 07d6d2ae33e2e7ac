"""Local attention with weights of their own for each token's neighbours.

Letters: N batch, P = H * W tokens, C channels, h heads, k side of the neighbourhood.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .dispatch import is_plain

MOST_ROOM = 4  # times the room of the maps, for a matrix of all pairs of tokens


def sum_neighbours(maps: Tensor, values: Tensor) -> Tensor:
    """Sum the values of each token's neighbours, zeros around the grid, times their weights.

    Small grids take one product of matrices.

    Args:
        maps: weights of the neighbours, row by row, ``(N, h, k * k, H, W)``.
        values: ``(N, C, H, W)``.

    Returns:
        ``(N, h, C / h, H, W)``.
    """
    small = values.shape[2] * values.shape[3] <= MOST_ROOM * maps.shape[2]
    if small and not is_plain():
        return sum_at_once(maps, values)
    return sum_one_by_one(maps, values)


def sum_one_by_one(maps: Tensor, values: Tensor) -> Tensor:
    """As :func:`sum_neighbours`, one neighbour at a time: needs no k * k copies of the values."""
    heads, side, (height, width) = maps.shape[1], math.isqrt(maps.shape[2]), values.shape[2:]
    around = pad(values, [side // 2] * 4).unflatten(1, (heads, -1))  # N, h, C / h, H + k - 1, W + k - 1
    total: Any = 0.0
    for index, weights in enumerate(maps.unbind(2)):
        i, j = divmod(index, side)
        total = total + weights.unsqueeze(2) * around[..., i : i + height, j : j + width]
    return total


def sum_at_once(maps: Tensor, values: Tensor) -> Tensor:
    """As :func:`sum_neighbours`: one product with matrices of all tokens, ``(N, h, P, P)``."""
    size = values.shape[2:]
    numbers, on_grid = _find_neighbours(size, math.isqrt(maps.shape[2]), values.device)
    rows = maps.flatten(3).transpose(2, 3) * on_grid  # N, h, P, k * k
    matrix = rows.new_zeros(*rows.shape[:3], len(numbers))
    matrix = matrix.scatter_add(3, numbers.expand(*rows.shape[:2], -1, -1), rows)
    return (values.flatten(2).unflatten(1, (maps.shape[1], -1)) @ matrix.transpose(2, 3)).unflatten(3, size)


def _find_neighbours(size: torch.Size, kernel_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Each token's k x k neighbours, row by row: the numbers of their tokens, and whether they are on the grid.

    Both are ``(P, k * k)``; those that are not on the grid have number 0.
    """
    near = torch.arange(kernel_size, device=device) - kernel_size // 2
    down, right = (torch.arange(side, device=device)[:, None] + near for side in size)  # H, k and W, k
    inside_down, inside_right = ((place >= 0) & (place < side) for place, side in zip((down, right), size))
    on_grid = inside_down[:, None, :, None] & inside_right[None, :, None, :]  # H, W, k, k
    numbers = down[:, None, :, None] * size[1] + right[None, :, None, :]
    return numbers.where(on_grid, 0).flatten(2).flatten(0, 1), on_grid.flatten(2).flatten(0, 1)
