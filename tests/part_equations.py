"""The published equations of a part of VT: with its own matrices, made dense, and sample by sample."""

import published_early_equations as early
import published_equations as published
import torch
from published_equations import pixels
from torch import nn
from torch.nn.functional import grid_sample

from vt.models.visual_transformers.clustering_tokenizer import ITERATIONS


def matrix(linear):
    """W of a grouped linear map, or None where there is none."""
    return None if isinstance(linear, nn.Identity) else linear.dense()


def matrices(part, *names):
    return [matrix(getattr(part, name)) for name in names]


def scale_of(part, channels):
    return (channels // part.num_heads) ** -0.5 if part.scale != 1 else 1.0


def filter_tokenizer(part, x):
    rest = matrix(part.value), part.num_heads, scale_of(part, x.shape[1])
    return torch.stack([published.filter_tokenizer(pixels(sample), part.weight.T, *rest) for sample in x])


def recurrent_tokenizer(part, x, tokens):
    rest = *matrices(part, 'to_filters', 'value'), part.num_heads, scale_of(part, x.shape[1])
    return torch.stack([published.recurrent_tokenizer(pixels(sample), t, *rest) for sample, t in zip(x, tokens)])


def transformer(part, tokens):
    weights = matrices(part, 'key', 'query', 'feed_forward1', 'feed_forward2')
    scale = scale_of(part, weights[0].shape[1])
    return torch.stack([published.transformer(t, *weights, part.num_heads, scale) for t in tokens])


def projector(part, x, tokens):
    rest = *matrices(part, 'query', 'key', 'value'), part.num_heads, scale_of(part, x.shape[1])
    maps = [published.projector(pixels(sample), t, *rest) for sample, t in zip(x, tokens)]
    return torch.stack([refined.T for refined in maps]).reshape(x.shape)


def static_tokenizer(part, x):
    samples = []
    for sample in x:
        tokens, maps = early.static_tokenizer(pixels(sample), part.weight.T, part.value.dense())
        samples.append(with_positions(part, tokens, maps, sample.shape[1:]))
    return torch.stack(samples)


def dynamic_tokenizer(part, x, tokens):
    half = tokens.shape[1] // 2
    samples = []
    for sample, t in zip(x, tokens):
        weights = matrices(part, 'query', 'key', 'value')
        new, maps = early.dynamic_tokens(pixels(sample), t[:half], *weights, part.num_heads)
        samples.append(torch.cat([t[half:], with_positions(part, new, maps, sample.shape[1:])]))
    return torch.stack(samples)


def with_positions(part, tokens, maps, shape):
    """``[T, P] W``."""
    encoder = part.position_encoder
    if encoder is None:
        return tokens
    join, w_p = encoder.join_heads.flatten(), encoder.mix.dense()
    p = early.positions(maps, shape, encoder.size, list(encoder.downsample), join, w_p)
    return torch.cat([tokens, p], dim=-1) @ encoder.merge.dense()


def value_transformer(part, tokens):
    weights = matrices(part, 'query', 'key', 'value', 'feed_forward')
    return torch.stack([early.transformer(t, *weights, part.num_heads) for t in tokens])


def cells_of(x, grid):
    """Maps between their pixels at the centres of a grid's cells, ``(N, L, C)``."""
    down, across = ((2 * torch.arange(side, dtype=x.dtype) + 1) / side - 1 for side in grid)
    centres = torch.stack(torch.meshgrid(across, down, indexing='xy'), dim=-1).expand(len(x), -1, -1, -1)
    return grid_sample(x, centres, padding_mode='border', align_corners=False).flatten(2).mT


def pooling_tokenizer(part, x):
    pooled = cells_of(x, part.grid)
    w_v = matrix(part.value)
    return pooled if w_v is None else pooled @ w_v


def centres_of(sample, grid, iterations):
    """k-means of the pixels of one map ``(C, H, W)``, pixel by pixel."""
    pixels = [pixel / pixel.norm() for pixel in published.pixels(sample.detach())]
    centres = [cell / cell.norm() for cell in cells_of(sample.detach()[None], grid)[0]]
    for _ in range(iterations):
        members = [[] for _ in centres]
        for pixel in pixels:
            likeness = [float(pixel @ centre) for centre in centres]
            members[likeness.index(max(likeness))].append(pixel)
        for index, group in enumerate(members):
            if group:
                centres[index] = sum(group) / sum(group).norm()
    return torch.stack(centres)


def clustering_tokenizer(part, x):
    samples = []
    for sample in x:
        centres = centres_of(sample, part.grid, ITERATIONS)
        samples.append(published.filter_tokenizer(published.pixels(sample), centres.T, matrix(part.value)))
    return torch.stack(samples)


def graph_convolution(part, tokens):
    return torch.stack([t + (part.edges @ t).clamp(min=0) for t in tokens])


def token_encoder(neck, x):
    tokens = filter_tokenizer(neck.tokenizer, x)
    tokens = torch.cat([neck.class_token.expand(len(x), -1, -1), tokens], dim=1) + neck.position_embedding
    vectors = []
    for sample in tokens:
        for layer in neck.layers:
            sample = early.encoder_layer(sample, dict(layer.named_parameters()), heads=4)
        vectors.append(early.layer_norm(sample, dict(neck.norm.named_parameters()), 1e-5)[0])
    return torch.stack(vectors)
