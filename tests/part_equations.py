"""The published equations of a part of VT: with its own matrices, made dense, and sample by sample."""

import published_early_equations as early
import published_equations as published
import torch
from published_equations import pixels
from torch import nn


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
