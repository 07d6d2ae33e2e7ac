"""Multiscale vision transformers as Fan et al. (2021) and Li et al. (2022) write them: the oracle of the tests.

Windows, heads and pairs of tokens are taken one by one; a grid has as many sides as it likes. Letters: K class tokens,
P tokens of the grid, C channels, d channels of a head.
"""

from fractions import Fraction
from itertools import product
from math import floor, prod

import torch
from published_survey import Weights, gelu, layer_norm, linear, under
from torch import Tensor

Size = tuple[int, ...]


def windows(size: Size, kernel: Size, stride: Size) -> list[list[list[int]]]:
    """The places ``[side, ...]`` under a kernel at each of its stands; a frame keeps odd kernels centred."""
    padding = [k // 2 if k % 2 else max(0, k - s) // 2 for k, s in zip(kernel, stride)]
    lengths = [(side + 2 * p - k) // s + 1 for side, p, k, s in zip(size, padding, kernel, stride)]
    return [
        [
            [stand * s - p + offset for stand, s, p, offset in zip(stands, stride, padding, offsets)]
            for offsets in product(*map(range, kernel))
        ]
        for stands in product(*map(range, lengths))
    ]


def pooled_size(size: Size, kernel: Size, stride: Size) -> Size:
    padding = [k // 2 if k % 2 else max(0, k - s) // 2 for k, s in zip(kernel, stride)]
    return tuple((side + 2 * p - k) // s + 1 for side, p, k, s in zip(size, padding, kernel, stride))


def number(place: list[int], size: Size) -> int | None:
    """Which token of the grid stands at a place; None outside."""
    if any(not 0 <= index < side for index, side in zip(place, size)):
        return None
    count = 0
    for index, side in zip(place, size):
        count = count * side + index
    return count


def pool(x: Tensor, size: Size, kernel: Size, stride: Size, mode: str, w: Weights | None = None) -> Tensor:
    """P of one head, ``(K + P, d)`` to ``(K + P', d)``; class tokens stay, and join before the normalisation."""
    if prod(kernel) * prod(stride) == 1:
        return x
    classes, grid = x[: len(x) - prod(size)], x[len(x) - prod(size) :]
    tokens = []
    for window in windows(size, kernel, stride):
        seen = [(index, number(place, size)) for index, place in enumerate(window)]
        seen = [(index, token) for index, token in seen if token is not None]
        if mode == 'convolution':
            kernels = w['weight'].reshape(grid.shape[1], -1)
            tokens.append(sum(kernels[:, index] * grid[token] for index, token in seen))
        elif mode == 'max':
            tokens.append(torch.stack([grid[token] for _, token in seen]).amax(dim=0))
        else:
            tokens.append(sum(grid[token] for _, token in seen) / len(window))
    x = torch.cat([classes, torch.stack(tokens)])
    return layer_norm(x, under(w, 'norm'), eps=1e-6) if mode == 'convolution' else x


def distance(i: int, j: int, q: int, k: int) -> int:
    """How far key j of k is from query i of q, in tokens of the finer grid; from 0."""
    finer = max(q, k)
    return floor(Fraction(i * finer, q) - Fraction(j * finer, k) + Fraction((k - 1) * finer, k))


def relative_bias(query: Tensor, i: list[int], j: list[int], q: Size, k: Size, w: Weights) -> Tensor:
    sides = ('time', 'height', 'width')[-len(q) :]
    rows = [distance(*pair) for pair in zip(i, j, q, k)]
    return sum(query @ w[f'relative.tables.{side}'][row] for side, row in zip(sides, rows))


def pooling_attention(
    x: Tensor, size: Size, w: Weights, heads: int, query: dict, key_value: dict, relative: bool, residual: bool
) -> Tensor:
    """One sample, ``(K + P, C)`` to ``(K + P', D)``; ``query`` and ``key_value`` are a kernel, a stride and a mode."""
    num_classes = len(x) - prod(size)
    projected = linear(x, under(w, 'qkv'), bias='qkv.bias' in w).chunk(3, dim=-1)
    q_size = pooled_size(size, query['kernel'], query['stride'])
    k_size = pooled_size(size, key_value['kernel'], key_value['stride'])
    read = []
    for queries, keys, values in zip(*(part.chunk(heads, dim=-1) for part in projected)):
        queries = pool(queries, size, **query, w=under(w, 'pool_query'))
        keys = pool(keys, size, **key_value, w=under(w, 'pool_key'))
        values = pool(values, size, **key_value, w=under(w, 'pool_value'))
        logits = queries @ keys.T / queries.shape[1] ** 0.5
        if relative:
            biases = torch.zeros_like(logits)
            for (row, i), (column, j) in product(
                *(enumerate(product(*map(range, sides)), start=num_classes) for sides in (q_size, k_size))
            ):
                biases[row, column] = relative_bias(queries[row], i, j, q_size, k_size, w)
            logits = logits + biases
        exponentials = logits.exp()
        out = exponentials / exponentials.sum(dim=1, keepdim=True) @ values
        if residual:
            out = torch.cat([out[:num_classes], out[num_classes:] + queries[num_classes:]])
        read.append(out)
    return linear(torch.cat(read, dim=-1), under(w, 'proj'))


def block(
    x: Tensor, size: Size, w: Weights, query: dict, grow_in: str, skip: str, out_channels: int, **attention
) -> Tensor:
    """One sample through a block, ``(K + P, C)`` to ``(K + P', out_channels)``."""

    def passing(x: Tensor, normed: Tensor, half: str) -> Tensor | float:
        if grow_in != half or x.shape[1] == out_channels:
            return x
        return 0.0 if skip == 'none' else linear(dict(normalised=normed, raw=x)[skip], under(w, 'project'))

    normed = layer_norm(x, under(w, 'attention.norm'), eps=1e-6)
    passed = passing(x, normed, 'attention')
    if isinstance(passed, Tensor):
        kernel = tuple(s + 1 if s > 1 else 1 for s in query['stride'])
        passed = pool(passed, size, kernel, query['stride'], 'max')
    x = passed + pooling_attention(normed, size, under(w, 'attention.part'), query=query, **attention)
    normed = layer_norm(x, under(w, 'feed_forward.norm'), eps=1e-6)
    hidden = gelu(linear(normed, under(w, 'feed_forward.part.fc1')))
    return passing(x, normed, 'feed_forward') + linear(hidden, under(w, 'feed_forward.part.fc2'))
