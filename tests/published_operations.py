"""The two operations by the published equations, random operands for them, and gradients of any kind."""

import published_equations as equations
import torch
from torch.autograd import grad
from torch.nn.functional import relu

ORDERS = ['pixel-major', 'channel-major']
MAPS = dict(
    centred=lambda x: x,
    rectified=relu,  # as after a ReLU
    shifted=lambda x: x + 2,  # a mean of two deviations
)


def random_pixels(n, p, c, order):
    """``(N, P, C)`` as a view of a map in channels_last or in the default memory format."""
    torch.manual_seed(p)
    if order == 'pixel-major':
        return torch.randn(n, p, c, dtype=torch.float64)
    return torch.randn(n, c, p, dtype=torch.float64).transpose(1, 2)


def direction_of(value):
    """A random gradient of a value, the same for all of its shape."""
    return torch.randn(value.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).to(value)


def with_gradients(function, *inputs):
    """Value and gradients of a function of leaves, against a fixed random direction."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    return value.detach(), torch.autograd.grad(value, leaves, direction_of(value))


def tokenize(heads, scale):
    def function(pixels, queries):
        queries = queries.expand(len(pixels), -1, -1)
        return torch.stack([equations.filter_tokenizer(x, w.T, None, heads, scale) for x, w in zip(pixels, queries)])

    return function


def project(scale, residual=False):
    def function(pixels, keys, values):
        samples = []
        for x, k, v in zip(pixels, keys, values):
            samples.append(torch.cat([equations.softmax(x @ k_h.T * scale, 1) @ v_h for k_h, v_h in zip(k, v)], -1))
        return torch.stack(samples) + (pixels if residual else 0)

    return function


def run_levels(tokenize_levels, project_onto_levels):
    """A function of queries, keys, values and levels: the tokens of all levels, then what is read, in one vector."""

    def function(queries, keys, values, *levels):
        tokens, levels = tokenize_levels(levels, queries)
        return torch.cat([x.flatten() for x in (tokens, *project_onto_levels(levels, keys, values))])

    return function


def levels(queries, keys, values, *levels):
    """The same, level by level."""
    tokens = [tokenize(1, 1.0)(x, rows) for x, rows in zip(levels, queries)]
    read = [project(1.0, True)(x, k[:, None], v[:, None]) for x, k, v in zip(levels, keys, values)]
    return torch.cat([x.flatten() for x in (*tokens, *read)])


def penalty_gradients(function, *leaves):
    """Gradients of a gradient penalty: of the squares of all first gradients."""
    first = grad(function(*leaves).square().sum(), leaves, create_graph=True)
    return grad(sum(gradient.square().sum() for gradient in first), leaves)


class NoGradient(torch.autograd.Function):
    """Passes a tensor on, and gives back None for its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None
