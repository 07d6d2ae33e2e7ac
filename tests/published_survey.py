"""Published vision transformers, written out as their papers and authors have them: the oracle of the tests.

A map is ``(N, H, W, C)``, tokens are ``(N, K + P, C)``, class tokens first. Windows and heads are taken one by
one; matrices act as in ``torch.nn``, and convolutions, normalisations, poolings and activations are PyTorch's. ``w``
holds the weights of a part by their names in it, statistics of batch normalisation among them.

A whole model takes maps, its weights, the heads of each stage, which stages are there, whether the statistics of the
batch are taken, and the size of the images that it was built for; it gives tokens.

Letters: N batch, H and W size of the grid, P = H * W tokens of it, K class tokens, C channels, h heads, d channels of
one, T tokens of a window, S tokens that are attended to.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import torch
from published_equations import softmax, split
from torch import Tensor, sigmoid
from torch.nn import functional as F
from torch.nn.functional import gelu, hardswish, relu, relu6, silu

Weights = dict[str, Tensor]
Size = tuple[int, int]
as_it_is = torch.nn.Identity()


# What all have in common.


def under(w: Weights, name: str) -> Weights:
    """The weights of a part of the part."""
    return {key.removeprefix(f'{name}.'): weight for key, weight in w.items() if key.startswith(f'{name}.')}


def items(w: Weights) -> list[Weights]:
    """The weights of each item of a list of parts."""
    return [under(w, str(number)) for number in range(len({key.split('.')[0] for key in w}))]


def every(w: Weights, name: str) -> list[Weights]:
    return items(under(w, name))


def linear(x: Tensor, w: Weights, bias: bool = True) -> Tensor:
    return x @ w['weight'].T + (w['bias'] if bias else 0)


def layer_norm(x: Tensor, w: Weights, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w['weight'], w['bias'], eps)


def batch_norm(x: Tensor, w: Weights, training: bool) -> Tensor:
    """Each channel, the last axis of ``x``, over everything else, or by the statistics of the training."""
    w = under(w, 'norm') or w
    statistics = (None, None) if training else (w['running_mean'], w['running_var'])
    return F.batch_norm(x.flatten(0, -2), *statistics, w['weight'], w['bias'], training).reshape(x.shape)


def channels_first(function: Callable, x: Tensor, *options) -> Tensor:
    """A function of PyTorch of a map ``(N, H, W, C)``."""
    return function(x.permute(0, 3, 1, 2), *options).permute(0, 2, 3, 1)


def convolution(
    x: Tensor, w: Weights, side: int, stride=1, padding: int = 0, bias: bool = True, dilation: int = 1, groups: int = 1
) -> Tensor:
    """By a kernel ``(C_out, C / groups, k, k)``."""
    assert w['weight'].shape[1:] == (x.shape[3] // groups, side, side)
    return channels_first(F.conv2d, x, w['weight'], w['bias'] if bias else None, stride, padding, dilation, groups)


def normed(
    x: Tensor, w: Weights, training: bool, side: int = 1, stride: int = 1, act: Callable = relu, bias: bool = False
) -> Tensor:
    """A convolution, its batch normalisation, and an activation; the size stays, or is divided."""
    x = convolution(x, under(w, 'conv'), side, stride, padding=side // 2, bias=bias)
    return act(batch_norm(x, under(w, 'bn'), training))


def depthwise(
    x: Tensor, w: Weights, side: int = 3, stride: int = 1, padding: int | None = None, bias: bool = True
) -> Tensor:
    """``(N, H, W, C)``, each channel by its own kernel, ``(C, 1, k, k)``; the size stays by default."""
    return convolution(x, w, side, stride, side // 2 if padding is None else padding, bias, groups=x.shape[3])


def max_pooling(x: Tensor) -> Tensor:
    """Of 3x3 pixels, every other one."""
    return channels_first(F.max_pool2d, x, 3, 2, 1)


def average_pooling(x: Tensor, size: Size) -> Tensor:
    """Averages over a grid of cells, of the pixels that a cell touches."""
    return channels_first(F.adaptive_avg_pool2d, x, size)


def tokens_of(x: Tensor) -> Tensor:
    """A map as tokens, row by row."""
    return x.reshape(len(x), -1, x.shape[-1])


def map_of(x: Tensor, size: Size) -> Tensor:
    """Tokens as a map."""
    return x.reshape(len(x), *size, x.shape[-1])


def apart(x: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """Class tokens, and the map."""
    classes = x.shape[1] - size[0] * size[1]
    return x[:, :classes], map_of(x[:, classes:], size)


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, bias: Tensor | None = None) -> Tensor:
    """Q ``(N, T, C)``, K and V ``(N, S, C)``, B ``(h, T, S)``: ``softmax(Q K^T / sqrt(d) + B) V`` of each head."""
    read = []
    for head, (q_h, k_h, v_h) in enumerate(zip(split(q, heads), split(k, heads), split(v, heads))):
        logits = q_h @ k_h.mT * q_h.shape[-1] ** -0.5
        read.append(softmax(logits if bias is None else logits + bias[head], dim=-1) @ v_h)
    return torch.cat(read, dim=-1)


def self_attention(x: Tensor, w: Weights, heads: int, bias: Tensor | None = None) -> Tensor:
    """Of all tokens to all."""
    return linear(attend(*linear(x, under(w, 'qkv')).chunk(3, dim=-1), heads, bias), under(w, 'proj'))


def mlp(x: Tensor, w: Weights, act: Callable = gelu, ratio: int = 4) -> Tensor:
    assert len(w['fc1.weight']) == ratio * x.shape[-1]
    return linear(act(linear(x, under(w, 'fc1'))), under(w, 'fc2'))


def normed_feed_forward(
    x: Tensor, w: Weights, training: bool, act: Callable = gelu, bias: bool = True, between: Callable = as_it_is
) -> Tensor:
    """Of a map: a matrix, a depthwise convolution, a matrix, each with batch normalisation."""
    assert len(w['fc1.weight']) == 4 * x.shape[-1]
    x = act(batch_norm(linear(x, under(w, 'fc1'), bias), under(w, 'fc1_norm'), training))
    x = depthwise(x, under(w, 'local.module.conv'), bias=bias)
    x = between(act(batch_norm(x, under(w, 'local.module.bn'), training)))
    return batch_norm(linear(x, under(w, 'fc2'), bias), under(w, 'fc2_norm'), training)


def branches(w: Weights) -> tuple[Weights, Weights, Weights, Weights]:
    """Of a block: the attention's normalisation, the attention, the feed-forward's normalisation, the feed-forward."""
    return tuple(under(w, f'{half}.{name}') for half in ('attention', 'feed_forward') for name in ('norm', 'part'))


def block(x: Tensor, w: Weights, attention: Callable, feed_forward: Callable = mlp, eps: float = 1e-5) -> Tensor:
    """``x + attention(norm(x), weights)``, and the same with the feed-forward."""
    norm1, w1, norm2, w2 = branches(w)
    x = x + attention(layer_norm(x, norm1, eps), w1)
    return x + feed_forward(layer_norm(x, norm2, eps), w2)


def plain_block(x: Tensor, w: Weights, heads: int, eps: float) -> Tensor:
    return block(x, w, partial(self_attention, heads=heads), eps=eps)


def unbiased_block(x: Tensor, w: Weights, heads: int, gain: float = 1.0) -> Tensor:
    """Q, K and V have no bias, the feed-forward three times the channels."""

    def attention(x: Tensor, w: Weights) -> Tensor:
        qkv = linear(x, under(w, 'qkv'), bias=False).chunk(3, dim=-1)
        return gain * linear(attend(*qkv, heads), under(w, 'proj'))

    return block(x, w, attention, lambda x, w: gain * mlp(x, w, ratio=3))


def after_classes(x: Tensor, w: Weights) -> Tensor:
    """A map, or tokens of one, as tokens behind the class tokens."""
    return torch.cat([w['class_tokens'].expand(len(x), -1, -1), tokens_of(x)], dim=1)


def in_vit(x: Tensor, w: Weights, block: Callable, eps: float = 1e-6) -> Tensor:
    """Tokens of a map, a class token, positions, blocks ``(x, weights, size, index)``, a last norm."""
    size, x = x.shape[1:3], after_classes(x, w) + w['position.vectors']
    for index, weights in enumerate(every(w, 'blocks')):
        x = block(x, weights, size, index)
    return layer_norm(x, under(w, 'norm'), eps)


def in_small_vit(x: Tensor, w: Weights, block: Callable) -> Tensor:
    (w_s,) = every(w, 'stages')
    return in_vit(convolution(x, under(w_s, 'embed.projection'), 16, stride=16), w_s, block)


# Windows: tokens that see each other, wherever they stand.


def windows(
    size: Size, window: Size, dilated: bool = False, shift: Size = (0, 0), centered: bool = False
) -> list[list[tuple[int, int]]]:
    """Of each window the places in the grid, row by row; those outside of the grid are padding.

    Side by side, window (a, b) holds the rows a * h to a * h + h - 1. Spread, it holds every n-th row from the a-th on,
    where n is the number of windows below each other. After a cyclic shift, row r holds what came from r + shift[0].
    Padding stands below and on the right; centered, half of it, rounded down, stands above and on the left.
    """
    numbers = [-(-whole // side) for whole, side in zip(size, window)]
    before = [(number * side - whole) // 2 * centered for number, side, whole in zip(numbers, window, size)]

    def place(axis: int, number: int, inside: int) -> int:
        own = inside * numbers[axis] + number if dilated else number * window[axis] + inside
        return (own + shift[axis]) % (numbers[axis] * window[axis]) - before[axis]

    inside = [*product(*map(range, window))]
    return [[(place(0, a, i), place(1, b, j)) for i, j in inside] for a, b in product(*map(range, numbers))]


def wrapped(places: list[tuple[int, int]], window: Size) -> Tensor:
    """Which two tokens of a window ``(T, T)`` are as near as they are only because the grid wrapped round."""
    inside = torch.cartesian_prod(*(torch.arange(side) for side in window))
    outside = torch.tensor(places)
    return ((inside[:, None] - inside) != (outside[:, None] - outside)).any(dim=-1)


def in_windows(
    x: Tensor, window: Size, relate: Callable, dilated: bool = False, shift: Size = (0, 0), centered: bool = False
) -> Tensor:
    """A map ``(N, H, W, C)`` through ``relate(tokens of a window (N, T, C), B)``, and back to the map.

    Zeros stand where the windows are larger than the map; what they come to is cut off.
    """
    rows, columns = x.shape[1:3]
    found = windows((rows, columns), window, dilated, shift, centered)
    places = torch.tensor(found)  # W_n, T, 2
    is_inside = ((places >= 0) & (places < torch.tensor([rows, columns]))).all(dim=-1)
    numbers = torch.where(is_inside, places[..., 0] * columns + places[..., 1], rows * columns)
    tokens = torch.cat([tokens_of(x), torch.zeros_like(x[:, :1, 0])], dim=1)[:, numbers]  # N, W_n, T, C
    results = []
    for own, inside in zip(found, tokens.unbind(1)):
        hidden = wrapped(own, window).to(x) if any(shift) else None
        results.append(relate(inside, None if hidden is None else hidden.masked_fill(hidden == 1, -math.inf)))
    return map_of(torch.cat(results, dim=1)[:, numbers.flatten().argsort()[: rows * columns]], (rows, columns))


def relative_bias(table: Tensor, window: Size) -> Tensor:
    """A table ``((2 a - 1) (2 b - 1), h)`` of the offsets in a window of a x b to B ``(h, T, T)``."""
    places = [(i, j) for i in range(window[0]) for j in range(window[1])]
    rows = [(i - m + window[0] - 1) * (2 * window[1] - 1) + j - n + window[1] - 1 for i, j in places for m, n in places]
    return table[rows].reshape(len(places), len(places), -1).permute(2, 0, 1)


def window_attention(
    x: Tensor, w: Weights, heads: int, window: Size, bias: bool = True, **placed
) -> tuple[Tensor, Tensor]:
    """Attention in windows with relative positions, not yet projected, and V; each a map ``(N, H, W, C)``."""
    table = relative_bias(w['bias.table'], window)

    def relate(tokens: Tensor, hidden: Tensor | None) -> Tensor:
        q, k, v = linear(tokens, under(w, 'qkv'), bias).chunk(3, dim=-1)
        return torch.cat([attend(q, k, v, heads, table if hidden is None else table + hidden), v], dim=-1)

    return in_windows(x, window, relate, **placed).chunk(2, dim=-1)


# Swin: windows, every other time shifted by half of one.


def even(x: Tensor, side: int = 2) -> Tensor:
    """A map with zeros below and on the right, so that whole squares cover it."""
    rows, columns = x.shape[1:3]
    return F.pad(x, (0, 0, 0, -columns % side, 0, -rows % side))


def merge(x: Tensor) -> Tensor:
    """2x2 neighbours as one token of four times the channels: all four values of a channel, then those of the next."""
    x = even(x)
    return torch.stack([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], dim=-1).flatten(3)


def patches_or_merged(x: Tensor, w: Weights, stage: int) -> Tensor:
    """Swin's tokens: of 4x4 patches, normalised; in later stages merged, normalised and then multiplied."""
    if stage == 0:
        return layer_norm(convolution(even(x, 4), under(w, 'projection'), 4, stride=4), under(w, 'norm'), 1e-5)
    return linear(layer_norm(merge(x), under(w, 'norm'), 1e-5), under(w, 'reduction'), bias=False)


def shifted_attention(x: Tensor, w: Weights, heads: int, stage: int, index: int, built: Size | None, **_) -> Tensor:
    """In every second block; a grid whose shorter side is a window's is not shifted (Swin's classifiers)."""
    window = shortened(7, built, stage)
    shift = (3, 3) if index % 2 and min(x.shape[1:3]) != min(window) else (0, 0)
    return linear(window_attention(x, w, heads, window, shift=shift)[0], under(w, 'proj'))


def shortened(window: int, built: Size | None, stage: int, is_cropped: bool = False) -> Size:
    """A window, at most as long as the longer side of the stage's grid in training; of images of size ``built``."""
    if built is None:
        return window, window
    longest = -(-max(built) // 4)
    side = min(window, longest // 2**stage if is_cropped else -(-longest // 2**stage))
    return side, side


def in_stages(x, w, heads, stages, attention, embed=patches_or_merged):
    """Stages of blocks with ``attention(map, weights, heads, stage, index, is_last)``, as Swin has them."""
    for w_s, h, stage in zip(every(w, 'stages'), heads, stages):
        x = embed(x, under(w_s, 'embed'), stage)
        blocks = every(w_s, 'blocks')
        for index, weights in enumerate(blocks):
            place = dict(heads=h, stage=stage, index=index, is_last=index == len(blocks) - 1)
            x = block(x, weights, partial(attention, **place))
    return tokens_of(layer_norm(x, under(w_s, 'norm'), 1e-5) if 3 in stages else x)


def swin(x, w, heads, stages=range(4), training=False, built=None):
    return in_stages(x, w, heads, stages, partial(shifted_attention, built=built))


# PVT: keys and values of a strided convolution; a class token in the last stage alone.


def reduced_attention(x: Tensor, w: Weights, heads: int, size: Size, ratio: int) -> Tensor:
    reduced = tokens_of(convolution(map_of(x, size), under(w, 'reduce.convolution'), ratio, stride=ratio))
    k, v = linear(layer_norm(reduced, under(w, 'reduce.norm'), 1e-5), under(w, 'key_value')).chunk(2, dim=-1)
    return linear(attend(linear(x, under(w, 'query')), k, v, heads), under(w, 'proj'))


def pvt(x, w, heads, stages=range(4), training=False):
    for w_s, h, stage in zip(every(w, 'stages'), heads, stages):
        side = (4, 2, 2, 2)[stage]
        x = convolution(x, under(w_s, 'embed.projection'), side, stride=side)
        size = x.shape[1:3]
        x = layer_norm(tokens_of(x), under(w_s, 'embed.norm'), 1e-5)
        x = (after_classes(x, w_s) if stage == 3 else x) + w_s['position.vectors']
        attention = partial(self_attention, heads=h)
        if stage < 3:
            attention = partial(reduced_attention, heads=h, size=size, ratio=(8, 4, 2)[stage])
        for weights in every(w_s, 'blocks'):
            x = block(x, weights, attention, partial(mlp, ratio=(8, 8, 4, 4)[stage]), 1e-6)
        if stage == 3:
            return layer_norm(x, under(w_s, 'norm'), 1e-6)
        x = map_of(x, size)
    return tokens_of(x)


# ResT: keys and values of a depthwise convolution, logits of the heads mixed, pixel attention as positions.


def pixel_attention(x: Tensor, w: Weights) -> Tensor:
    return x * sigmoid(depthwise(x, w))


def mixed_attention(x: Tensor, w: Weights, heads: int, size: Size, stage: int) -> Tensor:
    q, source = linear(x, under(w, 'query' if stage < 3 else 'qkv')), x
    if stage < 3:
        ratio = (8, 4, 2)[stage]
        reduced = depthwise(map_of(x, size), under(w, 'reduce.convolution'), ratio + 1, ratio, padding=ratio // 2)
        source = layer_norm(tokens_of(reduced), under(w, 'reduce.norm'), 1e-5)
        k, v = linear(source, under(w, 'key_value')).chunk(2, dim=-1)
    else:
        q, k, v = q.chunk(3, dim=-1)
    logits = [q_h @ k_h.mT * q_h.shape[-1] ** -0.5 for q_h, k_h in zip(split(q, heads), split(k, heads))]
    if stage > 0:
        logits = convolution(torch.stack(logits, dim=-1), under(w, 'mix.0'), 1).unbind(-1)
    maps = [softmax(each, dim=-1) for each in logits]
    if stage > 0:  # each head of a sample to mean zero and variance one over all of its map
        maps = [each - each.mean(dim=(1, 2), keepdim=True) for each in maps]
        maps = [each / (each.square().mean(dim=(1, 2), keepdim=True) + 1e-5).sqrt() for each in maps]
    return linear(torch.cat([a @ v_h for a, v_h in zip(maps, split(v, heads))], dim=-1), under(w, 'proj'))


def rest(x, w, heads, stages=range(4), training=False):
    for w_s, h, stage in zip(every(w, 'stages'), heads, stages):
        embed = under(w_s, 'embed')
        if stage == 0:
            first, second, third = every(embed, 'layers')
            x = normed(normed(x, first, training, 3, stride=2), second, training, 3)
            x = convolution(x, under(third, 'conv'), 3, stride=2, padding=1, bias=False)
        else:
            x = convolution(x, under(embed, 'projection'), 3, stride=2, padding=1)
            x = batch_norm(x, under(embed, 'norm'), training)
        x = pixel_attention(x, under(w_s, 'position.module.conv'))
        size, x = x.shape[1:3], tokens_of(x)
        for weights in every(w_s, 'blocks'):
            x = block(x, weights, partial(mixed_attention, heads=h, size=size, stage=stage))
        x = layer_norm(x, under(w_s, 'norm'), 1e-5) if stage == 3 else map_of(x, size)
    return x if 3 in stages else tokens_of(x)


# CSWin: vertical stripes for half of the heads, horizontal ones for the others; LePE inside of them.


def stripe_attention(x: Tensor, w: Weights, heads: int, window: Size) -> Tensor:
    """Attention in windows, to which a convolution of V adds, of each window by itself.

    Q, K and V are maps that are padded at both ends (the authors' code for segmentation).
    """

    def relate(tokens: Tensor, hidden: None) -> Tensor:
        q, k, v = tokens.chunk(3, dim=-1)
        return attend(q, k, v, heads) + tokens_of(depthwise(map_of(v, window), under(w, 'local.module.conv')))

    return in_windows(linear(x, under(w, 'qkv')), window, relate, centered=True)


def cswin(x, w, heads, stages=range(4), training=False):
    def embed(x: Tensor, w: Weights, stage: int) -> Tensor:
        side, stride, padding = (7, 4, 2) if stage == 0 else (3, 2, 1)
        return layer_norm(convolution(x, under(w, 'projection'), side, stride, padding), under(w, 'norm'), 1e-5)

    def attention(x: Tensor, w: Weights, heads: int, stage: int, index: int, is_last: bool) -> Tensor:
        rows, columns = x.shape[1:3]
        if stage == 3:
            read = stripe_attention(x, w, heads, (rows, columns))
        else:
            width = (1, 2, 7)[stage]
            vertical = stripe_attention(x, under(w, 'branches.0'), heads // 2, (rows, width))
            horizontal = stripe_attention(x, under(w, 'branches.1'), heads // 2, (width, columns))
            read = torch.cat([vertical, horizontal], dim=-1)
        return linear(read, under(w, 'proj'))

    return in_stages(x, w, heads, stages, attention, embed)


# CeiT: a convolution in the feed-forward, which the class token passes by, and attention to the class tokens of all
# blocks.


def local_feed_forward(x: Tensor, w: Weights, size: Size, training: bool) -> Tensor:
    classes, x = apart(x, size)
    return torch.cat([classes, tokens_of(normed_feed_forward(x, w, training))], dim=1)


def ceit(x, w, heads, training=False):
    """The class token of each block, ``(N, depth, C)``."""
    (w_s,) = every(w, 'stages')
    x = normed(x, under(w_s, 'embed.layers.0'), training, 7, 2, as_it_is)
    x = convolution(max_pooling(x), under(w_s, 'embed.patch.projection'), 4, stride=4)
    feed_forward = partial(local_feed_forward, size=x.shape[1:3], training=training)
    x = after_classes(x, w_s) + w_s['position.vectors']
    layers = []
    for weights in every(w_s, 'blocks'):
        x = block(x, weights, partial(self_attention, heads=heads[0]), feed_forward, 1e-6)
        layers.append(x[:, 0])
    return torch.stack(layers, dim=1)


def layerwise_class_attention(x: Tensor, w: Weights, heads: int) -> Tensor:
    """The class tokens of all blocks ``(N, depth, C)``; the last one looks at all. To ``(N, C)``."""
    norm1, attention, norm2, feed_forward = branches(under(w, 'block'))
    x = x + w['layers']
    last, normed = x[:, -1:], layer_norm(x, norm1, 1e-6)
    q = linear(normed[:, -1:], under(attention, 'query'))
    k, v = linear(normed, under(attention, 'key')), linear(normed, under(attention, 'value'))
    last = last + linear(attend(q, k, v, heads), under(attention, 'proj'))
    last = last + mlp(layer_norm(last, norm2, 1e-6), feed_forward)
    return layer_norm(last, under(w, 'norm'), 1e-6)[:, 0]


# CPVT: positions by a convolution behind each of the first five blocks.


def cpvt(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    x = convolution(x, under(w_s, 'embed.projection'), 16, stride=16)
    size, x = x.shape[1:3], tokens_of(x)
    for index, weights in enumerate(every(w_s, 'blocks')):
        x = plain_block(x, weights, heads[0], 1e-6)
        if index < 5:
            x = map_of(x, size)
            x = tokens_of(depthwise(x, under(w_s, f'peg.{index}.proj')) + x)
    return layer_norm(x, under(w_s, 'norm'), 1e-6)


# P2T: keys and values of averages over a pyramid of grids; the convolutions on them are those of the stage.


def pyramid_attention(x: Tensor, w: Weights, heads: int, size: Size, stage: int, convolutions: list[Weights]) -> Tensor:
    ratios = ((12, 16, 20, 24), (6, 8, 10, 12), (3, 4, 5, 6), (1, 2, 3, 4))[stage]
    levels = []
    for ratio, w_c in zip(ratios, convolutions):
        pooled = average_pooling(map_of(x, size), (round(size[0] / ratio), round(size[1] / ratio)))
        levels.append(tokens_of(pooled + depthwise(pooled, w_c)))
    pyramid = layer_norm(torch.cat(levels, dim=1), under(w, 'reduce.norm'), 1e-5)
    k, v = linear(pyramid, under(w, 'key_value')).chunk(2, dim=-1)
    return linear(attend(linear(x, under(w, 'query')), k, v, heads), under(w, 'proj'))


def inverted_residual(x: Tensor, w: Weights, size: Size, ratio: int) -> Tensor:
    assert len(w['fc1.weight']) == ratio * x.shape[-1]
    x = map_of(hardswish(linear(x, under(w, 'fc1'))), size)
    return linear(tokens_of(hardswish(depthwise(x, under(w, 'local.module.conv')))), under(w, 'fc2'))


def p2t(x, w, heads, stages=range(4), training=False):
    for w_s, h, stage in zip(every(w, 'stages'), heads, stages):
        side, stride, padding = (7, 4, 3) if stage == 0 else (3, 2, 1)
        x = convolution(x, under(w_s, 'embed.projection'), side, stride, padding)
        size, x = x.shape[1:3], layer_norm(tokens_of(x), under(w_s, 'embed.norm'), 1e-5)
        convolutions = every(under(w_s, 'blocks.0.attention.part.reduce'), 'convolutions')
        attention = partial(pyramid_attention, heads=h, size=size, stage=stage, convolutions=convolutions)
        feed_forward = partial(inverted_residual, size=size, ratio=(8, 8, 4, 4)[stage])
        for weights in every(w_s, 'blocks'):
            x = block(x, weights, attention, feed_forward, 1e-6)
        x = map_of(x, size)
    return tokens_of(x)


# Shuffle: windows and dilated ones in turn, a convolution of a window's width, batch normalisation.


def shuffle(x, w, heads, stages=range(4), training=False, built=None):
    for w_s, h, stage in zip(every(w, 'stages'), heads, stages):
        window = shortened(7, built, stage, is_cropped=True)
        embed = under(w_s, 'embed')
        if stage == 0:
            for layer in every(embed, 'layers'):
                x = normed(x, layer, training, 3, 2, relu6, bias=True)
            x = convolution(x, under(embed, 'patch.projection'), 1)
        else:
            layer = under(embed, 'layers.0')
            x = batch_norm(x, under(layer, 'bn'), training)
            x = convolution(x, under(layer, 'conv'), 2, stride=2, bias=False)
        for index, weights in enumerate(every(w_s, 'blocks')):
            norm1, attention, norm3, feed_forward = branches(weights)
            y = batch_norm(x, norm1, training)
            read, _ = window_attention(y, attention, h, window, dilated=index % 2 == 1, bias=False)
            x = x + linear(read, under(attention, 'proj'))
            y = batch_norm(x, under(weights, 'between.norm'), training)
            x = x + depthwise(y, under(weights, 'between.part.module.conv'), 7)
            x = x + mlp(batch_norm(x, norm3, training), feed_forward, relu6)
    return tokens_of(x)


# GG: a glance in dilated windows all over the grid, a gaze by a convolution of the values.


def gg(x, w, heads, stages=range(4), training=False, built=None):
    def attention(x: Tensor, w: Weights, heads: int, stage: int, index: int, is_last: bool) -> Tensor:
        glance, v = window_attention(x, w, heads, shortened(7, built, stage), dilated=True)
        gaze = depthwise(v, under(w, 'local.module.conv'), side=(9, 5, 3, 3)[stage])
        return linear(glance + gaze, under(w, 'proj'))

    return in_stages(x, w, heads, stages, attention)


# LocalViT: an inverted residual with squeeze and excitation as the feed-forward, which leaves the class token alone.


def squeeze_excite(x: Tensor, w: Weights) -> Tensor:
    """A map, each of its channels times a number that comes of the averages of all."""
    averages = x.mean(dim=(1, 2), keepdim=True)
    squeezed = relu(convolution(averages, under(w, 'conv1.conv'), 1))
    assert squeezed.shape[3] == 4
    return x * relu6(convolution(squeezed, under(w, 'conv2.conv'), 1) + 3) / 6  # the hard sigmoid


def squeezed_feed_forward(x: Tensor, w: Weights, training: bool) -> Tensor:
    """On a map; no matrix has a bias but those of the squeeze."""
    squeeze = partial(squeeze_excite, w=under(w, 'squeeze'))
    return normed_feed_forward(x, w, training, hardswish, bias=False, between=squeeze)


def localvit(x, w, heads, training=False):
    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        norm1, attention, _, feed_forward = branches(w)
        x = x + self_attention(layer_norm(x, norm1, 1e-6), attention, heads[0])
        classes, grid = apart(x, size)
        return torch.cat([classes, tokens_of(grid + squeezed_feed_forward(grid, feed_forward, training))], dim=1)

    return in_small_vit(x, w, block)


# DeepViT: new maps of those of all heads, in the last five of 16 blocks; branches of half their input, doubled.


def re_attention(x: Tensor, w: Weights, heads: int, training: bool) -> Tensor:
    q, k, v = linear(x, under(w, 'qkv')).chunk(3, dim=-1)
    maps = [softmax(q_h @ k_h.mT * q_h.shape[-1] ** -0.5, dim=-1) for q_h, k_h in zip(split(q, heads), split(k, heads))]
    mixed = convolution(torch.stack(maps, dim=-1), under(w, 'mix_maps.0'), 1)  # N, T, T, h
    mixed = batch_norm(mixed, under(w, 'mix_maps.1'), training) * 33**-0.5
    read = torch.cat([a @ v_h for a, v_h in zip(mixed.unbind(-1), split(v, heads))], dim=-1)
    return linear(read, under(w, 'proj'))


def deepvit(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    for layer, (side, stride) in zip(every(w_s, 'embed.layers'), ((7, 2), (3, 1))):
        x = normed(x, layer, training, side, stride)

    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        norm1, attention, norm2, feed_forward = branches(w)
        y = layer_norm(0.5 * x, norm1, 1e-6)
        mixes = index >= 11
        read = re_attention(y, attention, heads[0], training) if mixes else self_attention(y, attention, heads[0])
        x = x + read / 0.5
        return x + mlp(layer_norm(0.5 * x, norm2, 1e-6), feed_forward, ratio=3) / 0.5

    return in_vit(convolution(x, under(w_s, 'embed.patch.projection'), 8, stride=8), w_s, block)


# T2T-ViT: a soft split's tokens are all that lies under a kernel; between two splits is an attention.


def soft_split(x: Tensor, side: int, stride: int, padding: int) -> tuple[Tensor, Size]:
    """A map to tokens of a kernel's pixels, channel by channel, and the size of their grid."""
    pixels = F.unfold(x.permute(0, 3, 1, 2), side, padding=padding, stride=stride)
    rows, columns = ((whole + 2 * padding - side) // stride + 1 for whole in x.shape[1:3])
    return pixels.mT, (rows, columns)


def narrowed(x: Tensor, w: Weights) -> Tensor:
    """Wide tokens to narrow ones, whose values stay; the logits are divided by the root of the wide ones' channels."""
    q, k, v = linear(layer_norm(x, under(w, 'norm'), 1e-5), under(w, 'qkv'), bias=False).chunk(3, dim=-1)
    x = v + linear(softmax(q @ k.mT * x.shape[-1] ** -0.5, dim=-1) @ v, under(w, 'proj'))
    hidden = gelu(linear(layer_norm(x, under(w, 'feed_norm'), 1e-5), under(w, 'feed_forward.0')))
    return x + linear(hidden, under(w, 'feed_forward.2'))


def waves(number: int, channels: int) -> Tensor:
    """Sines in the even channels, cosines in the odd ones (Vaswani et al., section 3.5)."""
    angles = [[p / 10000 ** (2 * (c // 2) / channels) for c in range(channels)] for p in range(number)]
    return torch.tensor([[(math.cos if c % 2 else math.sin)(row[c]) for c in range(channels)] for row in angles])


def t2t(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    x, size = soft_split(x, 7, 4, 2)
    for transformer in every(w_s, 'embed.transformers'):
        x, size = soft_split(map_of(narrowed(x, transformer), size), 3, 2, 1)
    x = linear(x, under(w_s, 'embed.project'))
    x = after_classes(x, w_s)
    x = x + waves(*x.shape[1:])
    for weights in every(w_s, 'blocks'):
        x = unbiased_block(x, weights, heads[0])
    return layer_norm(x, under(w_s, 'norm'), 1e-5)


# A plain ViT, whose blocks or stem are another's.


def rezero(x, w, heads, training=False):
    def alike(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        _, attention, _, feed_forward = branches(w)
        (alpha,) = w['attention.scale.weight']
        x = x + alpha * self_attention(x, attention, heads[0])
        return x + alpha * mlp(x, feed_forward)

    return in_small_vit(x, w, alike)


def early_convolutions(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    for layer in every(w_s, 'embed.layers'):
        x = normed(x, layer, training, 3, 2)

    def narrow(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        return block(x, w, partial(self_attention, heads=heads[0]), partial(mlp, ratio=3))

    return in_vit(convolution(x, under(w_s, 'embed.patch.projection'), 1), w_s, narrow, 1e-5)


def sparse(x, w, heads, training=False):
    def alternating(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        def seen(i: int, j: int) -> bool:
            if not i or not j:  # the class token
                return True
            rows, columns = (abs(a - b) for a, b in zip(divmod(i - 1, size[1]), divmod(j - 1, size[1])))
            return rows % 4 == columns % 4 == 0 if index % 2 else rows <= 2 and columns <= 2

        tokens = range(x.shape[1])
        bias = torch.tensor([[0.0 if seen(i, j) else -math.inf for j in tokens] for i in tokens])
        return block(x, w, partial(self_attention, heads=heads[0], bias=bias.expand(heads[0], -1, -1)), eps=1e-6)

    return in_small_vit(x, w, alternating)


def random_features(x: Tensor, directions: Tensor) -> Tensor:
    """``phi(x) = exp(w . x - |x|^2 / 2) / sqrt(m)`` of each of m directions."""
    lengths = x.square().sum(dim=-1, keepdim=True)
    return (x @ directions.T - lengths / 2).exp() / math.sqrt(len(directions))


def performer_attention(x: Tensor, w: Weights, heads: int) -> Tensor:
    read = []
    for q, k, v in zip(*(split(each, heads) for each in linear(x, under(w, 'qkv')).chunk(3, dim=-1))):
        root = q.shape[-1] ** 0.25
        products = random_features(q / root, w['directions']) @ random_features(k / root, w['directions']).mT
        read.append(products / products.sum(dim=-1, keepdim=True) @ v)
    return linear(torch.cat(read, dim=-1), under(w, 'proj'))


def performer(x, w, heads, training=False):
    def linear_in_tokens(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        return block(x, w, partial(performer_attention, heads=heads[0]), eps=1e-6)

    return in_small_vit(x, w, linear_in_tokens)


# TokenLearner: maps over the pixels, whose averages are the tokens.


def pixel_logits(x: Tensor, w: Weights) -> Tensor:
    """Of each pixel its logit in each map, ``(N, P, L)``."""
    return linear(gelu(linear(layer_norm(x, under(w, '0'), 1e-6), under(w, '1'))), under(w, '3'))


def learned_tokens(x: Tensor, w: Weights) -> Tensor:
    """Pixels ``(N, P, C)`` to as many tokens as there are maps."""
    maps = softmax(pixel_logits(x, under(w, 'maps')), dim=1)
    return torch.stack([(weights[..., None] * x).sum(dim=1) for weights in maps.unbind(-1)], dim=1)


def token_learner(x, w, heads, training=False):
    first, second = every(w, 'stages')
    x = tokens_of(convolution(x, under(first, 'embed.projection'), 16, stride=16)) + first['position.vectors']
    for weights in every(first, 'blocks'):
        x = plain_block(x, weights, heads[0], 1e-6)
    x = learned_tokens(x, under(second, 'embed.tokenizer'))
    for weights in every(second, 'blocks'):
        x = plain_block(x, weights, heads[1], 1e-6)
    return layer_norm(x, under(second, 'norm'), 1e-6)


# ELSA: a token's map of its neighbours, by convolutions over products of queries and keys; the ghost head.


def hadamard_attention(x: Tensor, w: Weights, heads: int, group_width: int = 4) -> Tensor:
    """On a map, 7x7 neighbours."""
    inner = len(w['local_maps.0.weight'])
    q, k, v = linear(x, under(w, 'qkv')).split([inner, inner, x.shape[-1]], dim=-1)
    maps = gelu(convolution(q * k, under(w, 'local_maps.0'), 7, padding=3, groups=inner // group_width))
    maps = [softmax(a, dim=-1) for a in split(convolution(maps, under(w, 'local_maps.2'), 1), heads)]
    read, (rows, columns) = [], x.shape[1:3]
    v = F.pad(v, (0, 0, 3, 3, 3, 3))
    for i, j in product(range(7), repeat=2):
        for head, v_h in enumerate(split(v[:, i : i + rows, j : j + columns], heads)):
            own = slice(head * v_h.shape[-1], (head + 1) * v_h.shape[-1])
            weight = maps[head][..., 7 * i + j, None]
            weight = weight + w['ghost_shift'][own, 0, i, j]
            read.append(weight * v_h)
    return linear(torch.cat([sum(read[head::heads]) for head in range(heads)], dim=-1), under(w, 'proj'))


def elsa(x, w, heads, stages=range(4), training=False, built=None):
    def attention(x: Tensor, w: Weights, heads: int, stage: int, **place) -> Tensor:
        if stage < 3:
            return hadamard_attention(x, w, heads)
        return shifted_attention(x, w, heads, stage, built=built, **place)

    return in_stages(x, w, heads, stages, attention)


# HSwin: windows, and in the last block of a stage attention to averages over 7x7 cells.


def pooled_attention(x: Tensor, w: Weights, heads: int) -> Tensor:
    pooled = convolution(average_pooling(x, (7, 7)), under(w, 'reduce.convolution'), 1)
    pooled = gelu(layer_norm(tokens_of(pooled), under(w, 'reduce.norm'), 1e-5))
    k, v = linear(pooled, under(w, 'key_value')).chunk(2, dim=-1)
    read = attend(linear(tokens_of(x), under(w, 'query')), k, v, heads)
    return map_of(linear(read, under(w, 'proj')), x.shape[1:3])


def hswin(x, w, heads, stages=range(4), training=False, built=None):
    def attention(x: Tensor, w: Weights, heads: int, is_last: bool, **place) -> Tensor:
        if is_last:
            return pooled_attention(x, w, heads)
        return shifted_attention(x, w, heads, built=built, **place)

    return in_stages(x, w, heads, stages, attention)


# MSG: a messenger a window, first of its tokens; of a region's messengers the channels are shuffled.


def with_messengers(x: Tensor, messengers: Tensor, w: Weights, heads: int) -> tuple[Tensor, Tensor]:
    """The attention, of a map and the map of messengers, one for 7x7 tokens."""
    bias = relative_bias(w['bias.table'], (7, 7))
    whole = torch.cat([w['bias.to_messenger'].expand(-1, 49, 1), bias], dim=2)
    whole = torch.cat([w['bias.from_messenger'].expand(-1, 1, 50), whole], dim=1)
    said = []

    def relate(tokens: Tensor, hidden: None) -> Tensor:
        row, column = divmod(len(said), messengers.shape[2])
        tokens = torch.cat([messengers[:, row, column, None], tokens], dim=1)
        read = linear(attend(*linear(tokens, under(w, 'qkv')).chunk(3, dim=-1), heads, whole), under(w, 'proj'))
        said.append(read[:, 0])
        return read[:, 1:]

    return in_windows(x, (7, 7), relate), torch.stack(said, dim=1).reshape(messengers.shape)


def shuffled(messengers: Tensor, region: int) -> Tensor:
    rows, columns, c = messengers.shape[1:]
    down, across = math.gcd(rows, region), math.gcd(columns, region)
    share = c // (down * across)
    result = torch.zeros_like(messengers)
    for row in range(rows):
        for column in range(columns):
            top, left = row - row % down, column - column % across
            own = row % down * across + column % across
            others = [messengers[:, top + i, left + j] for i in range(down) for j in range(across)]
            result[:, row, column] = torch.cat([m[:, own * share : (own + 1) * share] for m in others], dim=-1)
    return result


def msg(x, w, heads, stages=range(4), training=False):
    for w_s, h, stage, region in zip(every(w, 'stages'), heads, stages, (4, 4, 2, 1)):
        embed = under(w_s, 'embed')
        if stage == 0:
            x = patches_or_merged(x, under(embed, 'embed'), stage)
            rows, columns = (-(-side // 7) for side in x.shape[1:3])
            own = [embed['messengers'][:, row % 4, column % 4] for row in range(rows) for column in range(columns)]
            messengers = torch.stack(own, dim=1).reshape(1, rows, columns, -1).expand(len(x), -1, -1, -1)
        else:
            x, messengers = (patches_or_merged(each, embed, stage) for each in (x, messengers))
        for weights in every(w_s, 'blocks'):
            norm1, attention, norm2, feed_forward = branches(weights)
            read, said = with_messengers(layer_norm(x, norm1, 1e-5), layer_norm(messengers, norm1, 1e-5), attention, h)
            x, messengers = x + read, shuffled(messengers + said, region)
            x, messengers = (each + mlp(layer_norm(each, norm2, 1e-5), feed_forward) for each in (x, messengers))
    x = torch.cat([tokens_of(messengers), tokens_of(x)], dim=1)
    return layer_norm(x, under(w_s, 'norm'), 1e-5) if 3 in stages else x


# ViTAE: reduction cells, which are embeddings here, and normal cells.


def token_performer(x: Tensor, w: Weights, epsilon: float = 0.0) -> Tensor:
    q, k, v = linear(x, under(w, 'qkv')).chunk(3, dim=-1)
    products = random_features(q, w['directions']) @ random_features(k, w['directions']).mT
    return v + linear(products / (products.sum(dim=-1, keepdim=True) + epsilon) @ v, under(w, 'proj'))


def reduction_cell(
    x: Tensor, w: Weights, side: int, stride: int, dilations: Sequence[int], training: bool
) -> tuple[Tensor, Size]:
    scales = []
    for weights, dilation in zip(every(w, 'pyramid'), dilations):
        padding = math.ceil(((side - 1) * dilation + 1 - stride) / 2)
        scales.append(gelu(convolution(x, weights, side, stride, padding, dilation=dilation)))
    scales = torch.cat(scales, dim=-1)
    size = scales.shape[1:3]
    if 'norm.weight' not in w:
        return tokens_of(scales), size
    first, second, third = every(w, 'local')
    strides = {4: (2, 2, 1), 2: (2, 1, 1)}[stride]
    x = silu(convolution(x, under(first, 'conv'), 3, strides[0], padding=1))
    x = normed(x, second, training, 3, strides[1], silu, bias=True)
    x = silu(convolution(x, under(third, 'conv'), 3, strides[2], padding=1))
    x = tokens_of(x) + token_performer(layer_norm(tokens_of(scales), under(w, 'norm'), 1e-5), under(w, 'attend'))
    hidden = gelu(linear(layer_norm(x, under(w, 'feed_norm'), 1e-5), under(w, 'feed_forward.0')))
    return x + linear(hidden, under(w, 'feed_forward.2')), size


def normal_cell(x: Tensor, w: Weights, size: Size, heads: int, groups: int, training: bool) -> Tensor:
    norm1, attention, norm2, feed_forward = branches(w)
    local = map_of(x, size)
    for layer in every(w, 'local'):
        local = convolution(local, under(layer, 'conv'), 3, padding=1, groups=groups)
        local = silu(batch_norm(local, under(layer, 'bn'), training) if 'bn.weight' in layer else local)
    x = x + self_attention(layer_norm(x, norm1, 1e-6), attention, heads) + tokens_of(local)
    return x + mlp(layer_norm(x, norm2, 1e-6), feed_forward, ratio=3)


def vitae(x, w, heads, training=False):
    stages = every(w, 'stages')
    for w_s, options in zip(stages, ((7, 4, (1, 2, 3, 4)), (3, 2, (1, 2, 3)), (3, 2, (1, 2)))):
        tokens, size = reduction_cell(x, under(w_s, 'embed'), *options, training)
        x = map_of(tokens, size)
    for weights in every(w_s, 'blocks'):
        tokens = normal_cell(tokens, weights, size, heads[-1], 3, training)
    return tokens


# PS-ViT: points that move over a map.


def bottleneck(x: Tensor, w: Weights, training: bool, depth_groups: int = 1) -> Tensor:
    first, second, third = every(w, 'layers')
    y = normed(x, first, training)
    if depth_groups == 1:
        y = normed(y, second, training, 3)
    else:
        y = relu(batch_norm(depthwise(y, under(second, 'conv'), bias=False), under(second, 'bn'), training))
    y = normed(y, third, training, act=as_it_is)
    if 'shortcut.conv.weight' in w:
        x = normed(x, under(w, 'shortcut'), training, act=as_it_is)
    return relu(x + y)


def at(x: Tensor, points: Tensor) -> Tensor:
    """A map between the four pixels around places ``(N, P, 2)``; a pixel outside is zero (the authors' kernel)."""
    places = 2 * points / (torch.tensor(x.shape[1:3]) - 1) - 1  # from -1 to 1
    return channels_first(F.grid_sample, x, places.flip(-1)[:, None], 'bilinear', 'zeros', True)[:, 0]


def sampled(x: Tensor, w: Weights, heads: int, training: bool) -> Tensor:
    """Four rounds; an image to tokens."""
    x = max_pooling(normed(x, under(w, 'stem.0'), training, 7, 2))
    x = bottleneck(bottleneck(x, under(w, 'stem.2'), training), under(w, 'stem.3'), training)
    rows, columns = x.shape[1:3]
    points = [(4 * i + 2.0, 4 * j + 2.0) for i in range(rows // 4) for j in range(columns // 4)]
    points = torch.tensor([points] * len(x), dtype=torch.float64)
    offsets, tokens = torch.zeros_like(points), 0
    for index, weights in enumerate(every(w, 'blocks')):
        seen = at(x, points + offsets)
        points = points + offsets.detach()
        place = linear(points / torch.tensor([rows, columns]), under(w, 'position'))
        tokens = unbiased_block(seen + place + tokens, weights, heads)
        if index < 3:
            offsets = tokens @ w['moves'][index].T + w['shifts'][index]
    return tokens


def progressive_sampling(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    x = after_classes(sampled(x, under(w_s, 'embed'), 6, training), w_s)
    for weights in every(w_s, 'blocks'):
        x = unbiased_block(x, weights, heads[0])
    return layer_norm(x, under(w_s, 'norm'), 1e-5)


# LV-ViT: a stem of convolutions, branches of half their weight.


def lv_vit(x, w, heads, training=False):
    (w_s,) = every(w, 'stages')
    for layer, (side, stride) in zip(every(w_s, 'embed.layers'), ((7, 2), (3, 1), (3, 1))):
        x = normed(x, layer, training, side, stride)

    def half(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        return unbiased_block(x, w, heads[0], gain=0.5)

    return in_vit(convolution(x, under(w_s, 'embed.patch.projection'), 8, stride=8), w_s, half, 1e-5)


# HRFormer: resolutions beside each other.


def halved(
    x: Tensor, first: Weights, second: Weights, training: bool, act: Callable = relu, bias: bool = False
) -> Tensor:
    """A depthwise convolution of stride 2, and a matrix."""
    x = depthwise(x, under(first, 'conv'), stride=2, bias=bias)
    return normed(batch_norm(x, under(first, 'bn'), training), second, training, act=act, bias=bias)


def enlarged(x: Tensor, size: Size, steps: int) -> Tensor:
    """A map of 2^steps times the size, then of this size."""
    x = x.repeat_interleave(2**steps, dim=1).repeat_interleave(2**steps, dim=2)
    return channels_first(F.interpolate, x, size, None, 'bilinear', True)  # the corners of the maps lie on each other


def resolution_block(x: Tensor, w: Weights, heads: int, training: bool) -> Tensor:
    norm1, attention, norm2, feed_forward = branches(w)
    read, _ = window_attention(layer_norm(x, norm1, 1e-6), attention, heads, (7, 7), centered=True)
    x = x + linear(read, under(attention, 'proj'))
    return x + gelu(normed_feed_forward(layer_norm(x, norm2, 1e-6), feed_forward, training))


def exchanged(maps: list[Tensor], w: Weights, training: bool) -> list[Tensor]:
    """In each branch the sum of all, as fine and as wide as it is."""
    results = []
    for target in range(len(maps)):
        total = maps[target]
        for source, x in enumerate(maps):
            own = under(w, f'exchange.{target}.{source}')
            if source > target:
                x = normed(x, own, training, act=as_it_is)
                total = total + enlarged(x, maps[target].shape[1:3], source - target)
            for step in range(source, target):
                act = as_it_is if step == target - 1 else relu
                first, second = (under(own, str(2 * (step - source) + layer)) for layer in (0, 1))
                x = halved(x, first, second, training, act)
            total = total + x if source < target else total
        results.append(relu(total))
    return results


def hrformer(x, w, heads, training=False):
    for index in (0, 1):
        x = normed(x, under(w, f'stem.{index}'), training, 3, 2)
    for index in (2, 3):
        x = bottleneck(x, under(w, f'stem.{index}'), training)
    maps = [x]
    for number, (modules, stage_heads) in enumerate(zip(every(w, 'stages'), heads)):
        own = under(w, f'transitions.{number}')
        coarser = normed(maps[-1], under(own, str(len(maps))), training, 3, 2)
        finer = [under(own, str(branch)) for branch in range(len(maps))]
        maps = [normed(x, layer, training, 3) if layer else x for x, layer in zip(maps, finer)] + [coarser]
        for module in items(modules):
            for branch, blocks in enumerate(every(module, 'branches')):
                for weights in items(blocks):
                    maps[branch] = resolution_block(maps[branch], weights, stage_heads[branch], training)
            maps = exchanged(maps, module, training)
    return maps


def scale_fusion(maps: list[Tensor], w: Weights, training: bool) -> Tensor:
    x, *others = (bottleneck(x, layer, training, 0) for x, layer in zip(maps, every(w, 'widen')))
    for other, layer in zip(others, every(w, 'halve')):
        x = other + halved(x, under(layer, '0'), under(layer, '1'), training, bias=True)
    return normed(x, under(w, 'leave'), training, bias=True)
