"""The survey's second half, written out as the papers and their authors have it: the oracle of the tests.

As in :mod:`published_survey`: maps are ``(N, H, W, C)``, tokens ``(N, K + P, C)``, class tokens first, and ``w`` holds
the weights of a part by their names in it.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from published_equations import softmax, split
from published_survey import (
    Size,
    Weights,
    after_classes,
    as_it_is,
    attend,
    average_pooling,
    batch_norm,
    block,
    branches,
    convolution,
    depthwise,
    every,
    framed,
    gelu,
    in_small_vit,
    in_stages,
    in_vit,
    in_windows,
    layer_norm,
    linear,
    map_of,
    max_pooling,
    mlp,
    normed,
    patches_or_merged,
    plain_block,
    relative_bias,
    relu,
    self_attention,
    shifted_attention,
    shortened,
    sigmoid,
    tokens_of,
    unbiased_block,
    under,
    under_kernel,
    window_attention,
)
from torch import Tensor

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


def sparse_attention(x: Tensor, w: Weights, heads: int, seen: Callable) -> Tensor:
    """Token i takes from those alone of which ``seen(i, j)`` says so."""
    read = []
    for q, k, v in zip(*(split(each, heads) for each in linear(x, under(w, 'qkv')).chunk(3, dim=-1))):
        tokens = []
        for i in range(x.shape[1]):
            those = [j for j in range(x.shape[1]) if seen(i, j)]
            weights = softmax((q[:, i, None] * k[:, those]).sum(dim=-1) * q.shape[-1] ** -0.5, dim=-1)
            tokens.append((weights[..., None] * v[:, those]).sum(dim=1))
        read.append(torch.stack(tokens, dim=1))
    return linear(torch.cat(read, dim=-1), under(w, 'proj'))


def sparse(x, w, heads, training=False):
    def alternating(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        def seen(i: int, j: int) -> bool:
            if not i or not j:  # the class token
                return True
            rows, columns = (abs(a - b) for a, b in zip(divmod(i - 1, size[1]), divmod(j - 1, size[1])))
            return rows % 4 == columns % 4 == 0 if index % 2 else rows <= 2 and columns <= 2

        return block(x, w, partial(sparse_attention, heads=heads[0], seen=seen), eps=1e-6)

    return in_small_vit(x, w, alternating)


def random_features(x: Tensor, directions: Tensor) -> Tensor:
    """``phi(x) = exp(w . x - |x|^2 / 2) / sqrt(m)`` of each of m directions."""
    lengths = x.square().sum(dim=-1)
    features = [((x * direction).sum(dim=-1) - lengths / 2).exp() for direction in directions]
    return torch.stack(features, dim=-1) / math.sqrt(len(directions))


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


# TokenLearner and TokenFuser: maps over the pixels, whose averages are the tokens, and gates.


def pixel_logits(x: Tensor, w: Weights) -> Tensor:
    """Of each pixel its logit in each map, ``(N, P, L)``."""
    hidden = gelu(linear(layer_norm(x, under(w, '0'), 1e-6), under(w, '1')))
    return linear(hidden, under(w, '3'))


def learned_tokens(x: Tensor, w: Weights) -> Tensor:
    """Pixels ``(N, P, C)`` to as many tokens as there are maps."""
    maps = softmax(pixel_logits(x, under(w, 'maps')), dim=1)
    return torch.stack([(weights[..., None] * x).sum(dim=1) for weights in maps.unbind(-1)], dim=1)


def fused(x: Tensor, tokens: Tensor, w: Weights) -> Tensor:
    """Pixels ``(N, P, C)``, and what each takes of the mixed tokens."""
    tokens = layer_norm(tokens, under(w, 'norm'), 1e-6).unbind(1)
    weight, bias = w['mix.weight'], w['mix.bias']
    mixed = [sum(weight[i, j] * tokens[j] for j in range(len(tokens))) + bias[i] for i in range(len(tokens))]
    gates = sigmoid(pixel_logits(x, under(w, 'gates'))).unbind(-1)
    return x + sum(
        gate[..., None] * layer_norm(token, under(w, 'mixed_norm'), 1e-6)[:, None] for gate, token in zip(gates, mixed)
    )


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


def grouped(x: Tensor, w: Weights, side: int, groups: int) -> Tensor:
    """A convolution of the channels of each group by themselves; the size stays."""
    results = []
    for part, weight, bias in zip(x.chunk(groups, dim=-1), w['weight'].chunk(groups), w['bias'].chunk(groups)):
        results.append(convolution(part, dict(weight=weight, bias=bias), side, padding=side // 2))
    return torch.cat(results, dim=-1)


def hadamard_attention(x: Tensor, w: Weights, heads: int, group_width: int = 4) -> Tensor:
    """On a map, 7x7 neighbours."""
    inner = len(w['local_maps.0.weight'])
    q, k, v = linear(x, under(w, 'qkv')).split([inner, inner, x.shape[-1]], dim=-1)
    maps = gelu(grouped(q * k, under(w, 'local_maps.0'), 7, inner // group_width))
    maps = [softmax(a, dim=-1) for a in split(convolution(maps, under(w, 'local_maps.2'), 1), heads)]
    read = []
    for i, j, seen in under_kernel(framed(v, 3), 7, 1):
        for head, v_h in enumerate(split(seen, heads)):
            own = slice(head * v_h.shape[-1], (head + 1) * v_h.shape[-1])
            weight = maps[head][..., 7 * i + j, None]
            weight = weight + w['ghost_shift'][own, 0, i, j]
            read.append(weight * v_h)
    return linear(torch.cat([sum(read[head::heads]) for head in range(heads)], dim=-1), under(w, 'proj'))


def elsa(x, w, heads, stages=range(4), training=False, built=None):
    def attention(x: Tensor, w: Weights, heads: int, stage: int, index: int, is_last: bool) -> Tensor:
        if stage < 3:
            return hadamard_attention(x, w, heads)
        return shifted_attention(x, w, heads, index, shortened(7, built, stage))

    return in_stages(x, w, heads, stages, attention)


# HSwin: windows, and in the last block of a stage attention to averages over 7x7 cells.


def pooled_attention(x: Tensor, w: Weights, heads: int) -> Tensor:
    pooled = convolution(average_pooling(x, (7, 7)), under(w, 'reduce.convolution'), 1)
    pooled = gelu(layer_norm(tokens_of(pooled), under(w, 'reduce.norm'), 1e-5))
    k, v = linear(pooled, under(w, 'key_value')).chunk(2, dim=-1)
    read = attend(linear(tokens_of(x), under(w, 'query')), k, v, heads)
    return map_of(linear(read, under(w, 'proj')), x.shape[1:3])


def hswin(x, w, heads, stages=range(4), training=False, built=None):
    def attention(x: Tensor, w: Weights, heads: int, stage: int, index: int, is_last: bool) -> Tensor:
        if is_last:
            return pooled_attention(x, w, heads)
        return shifted_attention(x, w, heads, index, shortened(7, built, stage))

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


def silu(x: Tensor) -> Tensor:
    return x * (1 + torch.tanh(x / 2)) / 2  # the sigmoid, where its exponential is too large, too


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
        local = grouped(local, under(layer, 'conv'), 3, groups)
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


def at(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """A map ``(H, W, C)`` between its four pixels around a place; a pixel outside is zero (the authors' kernel)."""
    i, j, value = math.floor(row.item()), math.floor(column.item()), torch.zeros_like(x[0, 0])
    for y, down in ((i, 1 - (row - i)), (i + 1, row - i)):
        for z, across in ((j, 1 - (column - j)), (j + 1, column - j)):
            if 0 <= y < x.shape[0] and 0 <= z < x.shape[1]:
                value = value + x[y, z] * down * across
    return value


def sampled(x: Tensor, w: Weights, heads: int, training: bool) -> Tensor:
    """Four rounds; an image to tokens."""
    x = max_pooling(normed(x, under(w, 'stem.0'), training, 7, 2))
    x = bottleneck(bottleneck(x, under(w, 'stem.2'), training), under(w, 'stem.3'), training)
    rows, columns = x.shape[1:3]
    points = [(4 * i + 2.0, 4 * j + 2.0) for i in range(rows // 4) for j in range(columns // 4)]
    points = torch.tensor([points] * len(x), dtype=torch.float64)
    offsets, tokens = torch.zeros_like(points), 0
    for index, weights in enumerate(every(w, 'blocks')):
        seen = torch.stack(
            [torch.stack([at(own, *place) for place in places]) for own, places in zip(x, points + offsets)]
        )
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


def resized(x: Tensor, size: Size) -> Tensor:
    """Between two pixels a side; the corners of the maps lie on each other."""
    for side, wanted in zip((1, 2), size):
        x = x.movedim(side, 0)
        own = len(x)
        places = [row * (own - 1) / max(wanted - 1, 1) for row in range(wanted)]
        lows = [min(int(place), own - 1) for place in places]
        rows = [x[low] + (place - low) * (x[min(low + 1, own - 1)] - x[low]) for place, low in zip(places, lows)]
        x = torch.stack(rows).movedim(0, side)
    return x


def enlarged(x: Tensor, size: Size, steps: int) -> Tensor:
    """A map of 2^steps times the size, then of this size."""
    return resized(x.repeat_interleave(2**steps, dim=1).repeat_interleave(2**steps, dim=2), size)


def resolution_block(x: Tensor, w: Weights, heads: int, training: bool) -> Tensor:
    norm1, attention, norm2, feed_forward = branches(w)
    read, _ = window_attention(layer_norm(x, norm1, 1e-6), attention, heads, (7, 7), centered=True)
    x = x + linear(read, under(attention, 'proj'))
    y = linear(layer_norm(x, norm2, 1e-6), under(feed_forward, 'fc1'))
    y = gelu(batch_norm(y, under(feed_forward, 'fc1_norm'), training))
    y = depthwise(y, under(feed_forward, 'local.module.conv'))
    y = gelu(batch_norm(y, under(feed_forward, 'local.module.bn'), training))
    y = linear(y, under(feed_forward, 'fc2'))
    return x + gelu(batch_norm(y, under(feed_forward, 'fc2_norm'), training))


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
        for module in (under(modules, str(index)) for index in range(len({key.split('.')[0] for key in modules}))):
            for branch, blocks in enumerate(every(module, 'branches')):
                for index in range(len({key.split('.')[0] for key in blocks})):
                    maps[branch] = resolution_block(
                        maps[branch], under(blocks, str(index)), stage_heads[branch], training
                    )
            maps = exchanged(maps, module, training)
    return maps


def scale_fusion(maps: list[Tensor], w: Weights, training: bool) -> Tensor:
    x, *others = (bottleneck(x, layer, training, 0) for x, layer in zip(maps, every(w, 'widen')))
    for other, layer in zip(others, every(w, 'halve')):
        x = other + halved(x, under(layer, '0'), under(layer, '1'), training, bias=True)
    return normed(x, under(w, 'leave'), training, bias=True)
