"""The survey's second half, written out as the papers and their authors have it: the oracle of the tests.

As in :mod:`literal_survey`: maps are ``(N, H, W, C)``, tokens ``(N, K + P, C)``, class tokens first, and ``w`` holds
the weights of a part by their names in it.
"""

import math
from collections.abc import Callable, Sequence

import torch
from literal_equations import softmax, split
from literal_survey import (
    Size,
    Weights,
    batch_norm,
    branches,
    convolution,
    every,
    gelu,
    layer_norm,
    linear,
    mlp,
    plain_block,
    relu,
    self_attention,
    sigmoid,
    tokens_of,
    under,
)
from torch import Tensor

# A plain ViT, whose blocks or stem are another's.


def in_vit(x: Tensor, w: Weights, block: Callable) -> Tensor:
    """Tokens of a map, a class token, positions, blocks ``(x, weights, size, index)``, a last norm."""
    size = x.shape[1:3]
    x = torch.cat([torch.cat([w['class_tokens']] * len(x)), tokens_of(x)], dim=1) + w['position.vectors']
    for index, weights in enumerate(every(w, 'blocks')):
        x = block(x, weights, size, index)
    return layer_norm(x, under(w, 'norm'), 1e-6)


def in_small_vit(x: Tensor, w: Weights, block: Callable) -> Tensor:
    (w_s,) = every(w, 'stages')
    return in_vit(convolution(x, under(w_s, 'embed.projection'), 16, stride=16), w_s, block)


def rezero(x: Tensor, w: Weights, heads: Sequence[int], training: bool = False) -> Tensor:
    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        _, attention, _, feed_forward = branches(w)
        (alpha,) = w['attention.scale.weight']
        x = x + alpha * self_attention(x, attention, heads[0])
        return x + alpha * mlp(x, feed_forward)

    return in_small_vit(x, w, block)


def early_convolutions(x: Tensor, w: Weights, heads: Sequence[int], training: bool = False) -> Tensor:
    (w_s,) = every(w, 'stages')
    for layer in every(under(w_s, 'embed'), 'layers'):
        x = convolution(x, under(layer, 'conv'), 3, stride=2, padding=1, bias=False)
        x = relu(batch_norm(x, under(layer, 'bn'), training))

    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        norm1, attention, norm2, feed_forward = branches(w)
        x = x + self_attention(layer_norm(x, norm1, 1e-6), attention, heads[0])
        return x + mlp(layer_norm(x, norm2, 1e-6), feed_forward, ratio=3)

    return in_vit(convolution(x, under(w_s, 'embed.patch.projection'), 1), w_s, block)


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


def sparse(x: Tensor, w: Weights, heads: Sequence[int], training: bool = False) -> Tensor:
    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        def seen(i: int, j: int) -> bool:
            if not i or not j:  # the class token
                return True
            rows, columns = (abs(a - b) for a, b in zip(divmod(i - 1, size[1]), divmod(j - 1, size[1])))
            return rows % 4 == columns % 4 == 0 if index % 2 else rows <= 2 and columns <= 2

        norm1, attention, norm2, feed_forward = branches(w)
        x = x + sparse_attention(layer_norm(x, norm1, 1e-6), attention, heads[0], seen)
        return x + mlp(layer_norm(x, norm2, 1e-6), feed_forward)

    return in_small_vit(x, w, block)


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


def performer(x: Tensor, w: Weights, heads: Sequence[int], training: bool = False) -> Tensor:
    def block(x: Tensor, w: Weights, size: Size, index: int) -> Tensor:
        norm1, attention, norm2, feed_forward = branches(w)
        x = x + performer_attention(layer_norm(x, norm1, 1e-6), attention, heads[0])
        return x + mlp(layer_norm(x, norm2, 1e-6), feed_forward)

    return in_small_vit(x, w, block)


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


def token_learner(x: Tensor, w: Weights, heads: Sequence[int], training: bool = False) -> Tensor:
    first, second = every(w, 'stages')
    x = tokens_of(convolution(x, under(first, 'embed.projection'), 16, stride=16)) + first['position.vectors']
    for block in every(first, 'blocks'):
        x = plain_block(x, block, heads[0], 1e-6)
    x = learned_tokens(x, under(second, 'embed.tokenizer'))
    for block in every(second, 'blocks'):
        x = plain_block(x, block, heads[1], 1e-6)
    return layer_norm(x, under(second, 'norm'), 1e-6)
