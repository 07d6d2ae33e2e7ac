"""Gradients where they are hard: gradients of gradients, gradients that are not there, half precision off centre."""

import pytest
import torch
from published_operations import ORDERS, published_project, published_tokenize, random_pixels
from torch.autograd import grad
from torch.nn.functional import relu

from vt.ops import project, project_onto, tokenize, use_path

PATHS = ['plain', 'fused']
# N, P, C, L, heads
SHAPES = [(2, 6, 4, 3, 1), (1, 5, 4, 2, 2)]


def operands(shape, order='pixel-major'):
    """Pixels, queries, keys and values, all leaves."""
    n, p, c, num_tokens, heads = shape
    pixels = random_pixels(n, p, c, order)
    sizes = [(num_tokens, c), (n, heads, num_tokens, c), (n, heads, num_tokens, c // heads)]
    queries, keys, values = (torch.randn(size, dtype=torch.float64) for size in sizes)
    return [tensor.requires_grad_() for tensor in (pixels, queries, keys, values)]


def penalty_gradients(function, *leaves):
    """Gradients of a gradient penalty: of the squares of all first gradients."""
    first = grad(function(*leaves).square().sum(), leaves, create_graph=True)
    return grad(sum(gradient.square().sum() for gradient in first), leaves)


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('shape', SHAPES)
def test_gradients_of_gradients_equal_the_equations(path, order, shape):
    pixels, queries, keys, values = operands(shape, order)
    heads = shape[-1]
    with use_path(path):
        ours = [
            penalty_gradients(lambda x, q: tokenize(x, q, heads, 0.7), pixels, queries),
            penalty_gradients(lambda *tensors: project(*tensors, 0.7), pixels, keys, values),
            penalty_gradients(lambda *tensors: project_onto(*tensors, 0.7), pixels, keys, values),
        ]
    theirs = [
        penalty_gradients(published_tokenize(heads, 0.7), pixels, queries),
        penalty_gradients(published_project(0.7), pixels, keys, values),
        penalty_gradients(published_project(0.7, residual=True), pixels, keys, values),
    ]
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('path', PATHS)
def test_only_what_asks_for_a_gradient_gets_one(path):
    pixels, queries, *_ = operands(SHAPES[0])
    for leaf, other in ((pixels, queries), (queries, pixels)):
        other.requires_grad_(False)
        with use_path(path):
            (first,) = grad(tokenize(pixels, queries).square().sum(), leaf, create_graph=True)
        (exact,) = grad(published_tokenize(1, 1.0)(pixels, queries).square().sum(), leaf, create_graph=True)
        torch.testing.assert_close(grad(first.square().sum(), leaf), grad(exact.square().sum(), leaf))
        other.requires_grad_()


class NoGradient(torch.autograd.Function):
    """Passes a tensor on, and gives back None for its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


@pytest.mark.parametrize('path', PATHS)
def test_a_gradient_that_is_not_there_is_zero(path):
    pixels, queries, keys, values = operands(SHAPES[0])
    with use_path(path):
        outs = [tokenize(pixels, queries), project(pixels, keys, values), project_onto(pixels, keys, values)]
    loss = sum(NoGradient.apply(out).sum() for out in outs) + 3 * pixels.sum()
    loss.backward()
    torch.testing.assert_close(pixels.grad, torch.full_like(pixels, 3))
    assert all(leaf.grad is None or not leaf.grad.any() for leaf in (queries, keys, values))


MAPS = dict(
    centred=lambda x: x,
    rectified=relu,  # as after a ReLU
    shifted=lambda x: x + 2,  # a mean of two deviations
)


@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('samples', [1, 3])
@pytest.mark.parametrize('kind', MAPS)
def test_filters_learn_in_bfloat16_from_maps_with_a_mean(order, samples, kind):
    pixels = MAPS[kind](random_pixels(samples, 1024, 64, order)).bfloat16()
    queries = (torch.randn(8, 64) / 8).bfloat16()
    direction = torch.randn(samples, 8, 64).bfloat16()

    def gradients(function, dtype):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (pixels, queries)]
        return grad(function(*leaves), leaves, direction.to(dtype))

    with use_path('fused'):
        ours = gradients(tokenize, torch.bfloat16)
    for own, exact in zip(ours, gradients(published_tokenize(1, 1.0), torch.float64)):
        assert (own - exact).norm() < 0.01 * exact.norm()
