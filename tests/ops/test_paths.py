"""Every path of tokenize and project against the literal equations, forward and gradients."""

import literal_equations as literal
import pytest
import torch

from vt.ops import current_path, project, project_onto, tokenize, use_path

PATHS = ['plain', 'sdpa']
ORDERS = ['pixel-major', 'channel-major']
# N, P, C, L, heads
SHAPES = [(2, 35, 12, 5, 1), (1, 1, 8, 1, 1), (3, 7, 8, 1, 2), (1, 64, 6, 16, 3), (2, 9, 32, 4, 4)]


def random_pixels(n, p, c, order):
    """``(N, P, C)`` as a view of a map in channels_last or in the default memory format."""
    torch.manual_seed(p)
    if order == 'pixel-major':
        return torch.randn(n, p, c, dtype=torch.float64)
    return torch.randn(n, c, p, dtype=torch.float64).transpose(1, 2)


def with_gradients(function, *inputs):
    """Value and gradients of a function of leaves, against a fixed random direction."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    direction = torch.randn(value.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return value.detach(), torch.autograd.grad(value, leaves, direction.to(value.dtype))


def literal_tokenize(heads, scale):
    def function(pixels, queries):
        queries = queries.expand(len(pixels), -1, -1)
        return torch.stack([literal.filter_tokenizer(x, w.T, None, heads, scale) for x, w in zip(pixels, queries)])

    return function


def literal_project(scale, residual=False):
    def function(pixels, keys, values):
        samples = []
        for x, k, v in zip(pixels, keys, values):
            samples.append(torch.cat([literal.softmax(x @ k_h.T * scale, 1) @ v_h for k_h, v_h in zip(k, v)], -1))
        return torch.stack(samples) + (pixels if residual else 0)

    return function


def assert_same(ours, theirs, **tolerance):
    torch.testing.assert_close(ours[0], theirs[0], **tolerance)
    for own, other in zip(ours[1], theirs[1], strict=True):
        torch.testing.assert_close(own, other, **tolerance)


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('shared', [True, False])
@pytest.mark.parametrize('sharpness', [1.0, 50.0])
def test_tokenize_equals_the_equation(path, order, shape, shared, sharpness):
    n, p, c, num_tokens, heads = shape
    pixels = random_pixels(n, p, c, order)
    queries = sharpness * torch.randn(*(() if shared else (n,)), num_tokens, c, dtype=torch.float64)
    with use_path(path):
        ours = with_gradients(lambda x, q: tokenize(x, q, heads, 0.7), pixels, queries)
    assert_same(ours, with_gradients(literal_tokenize(heads, 0.7), pixels, queries), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('sharpness', [1.0, 50.0])
@pytest.mark.parametrize('residual', [False, True])
def test_project_equals_the_equation(path, order, shape, sharpness, residual):
    n, p, c, num_tokens, heads = shape
    pixels = random_pixels(n, p, c, order)
    keys = sharpness * torch.randn(n, heads, num_tokens, c, dtype=torch.float64)
    values = torch.randn(n, heads, num_tokens, c // heads, dtype=torch.float64)
    function = project_onto if residual else project
    with use_path(path):
        ours = with_gradients(lambda x, k, v: function(x, k, v, 0.7), pixels, keys, values)
    theirs = with_gradients(literal_project(0.7, residual), pixels, keys, values)
    assert_same(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('order', ORDERS)
def test_the_plain_path_keeps_the_memory_order(order):
    pixels = random_pixels(2, 35, 12, order)
    keys, values = (torch.randn(2, 1, 5, 12, dtype=torch.float64) for _ in range(2))
    with use_path('plain'):
        for function in (project, project_onto):
            assert function(pixels, keys, values).stride() == pixels.stride()


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision_stays_near_float64(path, dtype):
    torch.manual_seed(0)
    pixels, queries = torch.randn(2, 77, 32).to(dtype), torch.randn(5, 32).to(dtype)
    exact = literal_tokenize(1, 1.0)(pixels.double(), queries.double())
    keys, values = queries.expand(2, 1, 5, 32), torch.randn(2, 1, 5, 32).to(dtype)
    exact_read = literal_project(1.0)(pixels.double(), keys.double(), values.double())
    with use_path(path):
        tokens, read = tokenize(pixels, queries), project(pixels, keys, values)
    assert tokens.dtype == read.dtype == dtype
    tolerance = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(tokens.double(), exact, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(read.double(), exact_read, rtol=tolerance, atol=tolerance)


def test_one_place_chooses():
    pixels = torch.zeros(1, 2, 3)
    automatic = current_path(pixels)
    with use_path('sdpa'):
        assert current_path(pixels) == 'sdpa'
        with use_path('plain'):
            assert current_path(pixels) == 'plain'
        assert current_path(pixels) == 'sdpa'
    assert current_path(pixels) == automatic
    with pytest.raises(ValueError, match="no path 'fast': choose one of plain, sdpa"), use_path('fast'):
        pass
