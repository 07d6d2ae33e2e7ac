"""Decomposed relative position bias: the sum of a bias per side of the grid.

Source: Li et al., MViTv2, CVPR 2022, section 3.1. Letters: N batch, h heads, d channels per head, K class tokens, P
queries and S keys of the grids, q and k lengths of a side in queries and keys.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from vt.checkpoints.grids import FileGrids
from vt.models.grid import Size
from vt.models.survey.positions.absolute import resize_positions

SIDES = ('time', 'height', 'width')  # images have the last two


class DecomposedRelativePosition(nn.Module):
    """``Q . (R_time + R_height + R_width)`` with a learned vector per distance and side; zero for class tokens.

    Distances count tokens of the finer of the two grids. For other grids than in training, the vectors are interpolated
    linearly.

    Args:
        channels: d.
        query_size, key_size: sizes of the grids of queries and keys during training.
    """

    def __init__(self, channels: int, query_size: Size, key_size: Size) -> None:
        super().__init__()
        self.tables = nn.ParameterDict()
        for name, q, k in zip(SIDES[-len(query_size) :], query_size, key_size):
            self.tables[name] = nn.Parameter(torch.zeros(2 * max(q, k) - 1, channels))
            nn.init.trunc_normal_(self.tables[name], std=0.02)

    def forward(self, queries: Tensor, query_size: Size, key_size: Size) -> list[Tensor]:
        """Return the bias along each side, ``(N, h, K + P, k)``, for queries ``(N, h, K + P, d)``."""
        classes, biases = queries.shape[2] - math.prod(query_size), []
        for side, (name, q, k) in enumerate(zip(SIDES[-len(query_size) :], query_size, key_size)):
            grid = queries[:, :, classes:].unflatten(2, query_size).movedim(2 + side, 2)  # N, h, q, others, d
            near = grid.flatten(3, -2) @ self.vectors(name, q, k).transpose(-2, -1)  # N, h, q, others, k
            others = query_size[:side] + query_size[side + 1 :]
            near = near.unflatten(3, others).movedim(2, 2 + side).flatten(2, -2)  # N, h, P, k
            biases.append(pad(near, (0, 0, classes, 0)))
        return biases

    def mask(self, queries: Tensor, keys: Tensor, query_size: Size, key_size: Size) -> Tensor:
        """Return the bias of each pair of a query and a key, ``(N, h, K + P, K + S)``."""
        biases, classes = self(queries, query_size, key_size), keys.shape[2] - math.prod(key_size)
        biases = [
            bias.unflatten(-1, [length if other == side else 1 for other in range(len(key_size))])
            for side, (bias, length) in enumerate(zip(biases, key_size))
        ]
        return pad(sum(biases).flatten(3), (classes, 0))

    def widen(
        self, queries: Tensor, keys: Tensor, query_size: Size, key_size: Size, scale: float
    ) -> tuple[Tensor, Tensor]:
        """Append channels to queries and keys so that their product is the scaled logits plus the bias.

        There is a channel per row, column and frame of the keys' grid: in queries it holds the bias, in keys a one-hot
        position. So neither the bias of all pairs nor its gradient is materialised.
        """
        biases, classes = self(queries, query_size, key_size), keys.shape[2] - math.prod(key_size)
        spare = -(queries.shape[-1] + sum(key_size)) % 8  # GPU kernels need a multiple of eight
        standing = pad(one_hot_sides(key_size).to(keys), (0, spare, classes, 0)).expand(*keys.shape[:2], -1, -1)
        zeros = queries.new_zeros(1).expand(*queries.shape[:3], spare)
        return torch.cat([queries * scale, *biases, zeros], dim=-1), torch.cat([keys, standing], dim=-1)

    def vectors(self, name: str, q: int, k: int) -> Tensor:
        """Return the vectors of one side for each pair of positions of a query and a key, ``(q, k, d)``."""
        table = self.tables[name]
        if table.shape[0] != 2 * max(q, k) - 1:
            table = resize_positions(table[None], table.shape[:1], (2 * max(q, k) - 1,))[0]
        queries, keys = torch.arange(q, device=table.device), torch.arange(k, device=table.device)
        return table[(queries[:, None] * k - (keys + 1 - k) * q) // min(q, k)]

    def resized(self, vectors: Tensor, name: str, grids: FileGrids) -> tuple[Tensor, Size, Size]:
        """Resize the vectors of one side from a checkpoint; return them, the old number and the new one."""
        size, to = vectors.shape[:1], self.get_parameter(name).shape[:1]
        return resize_positions(vectors[None], size, to)[0], size, to


def one_hot_sides(size: Size) -> Tensor:
    """One-hot position of each token of a grid along each side, ``(S, sum of the sides)``."""
    sides = [
        torch.eye(length).view(*(length if other == side else 1 for other in range(len(size))), length)
        for side, length in enumerate(size)
    ]
    return torch.cat([side.expand(*size, -1) for side in sides], dim=-1).flatten(0, -2)
