"""Multiscale vision transformers as Fan et al. (2021) and Li et al. (2022) write them: the oracle of the tests.

Heads and pairs of tokens are taken one by one; poolings are PyTorch's, and a grid has two sides or three. Letters: K
class tokens, P tokens of the grid, C channels, d channels of a head.
"""

from fractions import Fraction
from itertools import product
from math import floor, prod

import torch
from published_survey import Weights, gelu, layer_norm, linear, under
from torch import Tensor
from torch.nn.functional import avg_pool3d, conv3d, max_pool3d

Size = tuple[int, ...]


def frame(kernel: Size, stride: Size) -> Size:
    """The padding, which keeps odd kernels centred."""
    return tuple(k // 2 if k % 2 else max(0, k - s) // 2 for k, s in zip(kernel, stride))


def pooled_size(size: Size, kernel: Size, stride: Size) -> Size:
    return tuple((side + 2 * p - k) // s + 1 for side, p, k, s in zip(size, frame(kernel, stride), kernel, stride))


def pool(x: Tensor, size: Size, kernel: Size, stride: Size, mode: str, w: Weights | None = None) -> Tensor:
    """P of one head, ``(K + P, d)`` to ``(K + P', d)``; class tokens stay, and join before the normalisation."""
    if prod(kernel) * prod(stride) == 1:
        return x
    classes, grid = x[: len(x) - prod(size)], x[len(x) - prod(size) :]
    size, kernel, stride = ((1,) * (3 - len(sides)) + tuple(sides) for sides in (size, kernel, stride))  # of a clip
    grid, places = grid.T.reshape(1, -1, *size), dict(stride=stride, padding=frame(kernel, stride))
    if mode == 'convolution':
        channels = grid.shape[1]
        grid = conv3d(grid, w['weight'].reshape(channels, 1, *kernel), groups=channels, **places)
    else:
        grid = dict(max=max_pool3d, average=avg_pool3d)[mode](grid, kernel, **places)
    x = torch.cat([classes, grid.flatten(2)[0].T])
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
