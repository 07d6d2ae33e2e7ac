"""Every path of tokenize and project against the published equations: values, gradients, and gradients of gradients."""

from itertools import product
from types import SimpleNamespace

import published_operations as published
import pytest
import torch
from comparisons import assert_near
from hypothesis import given, settings
from hypothesis import strategies as st
from published_operations import MAPS, ORDERS, NoGradient, penalty_gradients, random_pixels, with_gradients
from torch.autograd import grad

from vt.ops import current_path, fused, project, project_onto, project_onto_levels, tokenize, tokenize_levels, use_path

PATHS = ['plain', 'fused']


def assert_same(ours, theirs, **tolerance):
    torch.testing.assert_close(ours[0], theirs[0], **tolerance)
    for own, other in zip(ours[1], theirs[1], strict=True):
        torch.testing.assert_close(own, other, **tolerance)


@settings(max_examples=60)
@given(
    st.integers(1, 3),  # N
    st.integers(1, 70),  # P
    st.integers(1, 8),  # C of a head
    st.integers(1, 16),  # L
    st.integers(1, 4),  # heads
    st.sampled_from(ORDERS),
    st.sampled_from([1.0, 50.0]),  # how sharp the attention is
    st.booleans(),  # queries of all samples, and a projection alone
)
def test_both_operations_are_the_equations_with_second_gradients(n, p, c, num_tokens, heads, order, sharpness, option):
    pixels = random_pixels(n, p, c * heads, order)
    queries = sharpness * torch.randn(*(() if option else (n,)), num_tokens, c * heads, dtype=torch.float64)
    keys = sharpness * torch.randn(n, heads, num_tokens, c * heads, dtype=torch.float64)
    values = torch.randn(n, heads, num_tokens, c, dtype=torch.float64)
    function = project if option else project_onto
    operations = [
        (lambda x, q: tokenize(x, q, heads, 0.7), published.tokenize(heads, 0.7), pixels, queries),
        (lambda x, k, v: function(x, k, v, 0.7), published.project(0.7, residual=not option), pixels, keys, values),
    ]
    for path, (ours, theirs, *inputs) in product(PATHS, operations):
        with use_path(path):
            assert_same(with_gradients(ours, *inputs), with_gradients(theirs, *inputs), rtol=1e-9, atol=1e-10)
            if sharpness == 1.0:
                leaves = [tensor.requires_grad_() for tensor in inputs]
                second = penalty_gradients(ours, *leaves), penalty_gradients(theirs, *leaves)
                torch.testing.assert_close(*second, rtol=1e-8, atol=1e-9)


LAYOUTS = [
    lambda x: x,
    lambda x: x.contiguous(memory_format=torch.channels_last),
    lambda x: x.transpose(2, 3),
    lambda x: x[:, :, ::2, 1:],
    lambda x: x.contiguous(memory_format=torch.channels_last)[:, ::2],
    lambda x: x.permute(0, 2, 1, 3),
    lambda x: x.expand(3, -1, -1, -1),
    lambda x: x[:, :, :1, :1],
]


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('function', [project, project_onto])
def test_a_map_of_any_layout_is_its_pixels(path, layout, function):
    torch.manual_seed(0)
    base = torch.randn(1, 6, 6, 6, dtype=torch.float64)
    n, c, height, width = layout(base).shape
    heads = 3 if c % 3 == 0 else 1
    queries = torch.randn(4, c, dtype=torch.float64)
    keys, values = (torch.randn(n, heads, 4, channels, dtype=torch.float64) for channels in (c, c // heads))

    def run(x, q, k, v):
        return function(layout(x), k, v, 0.7) + tokenize(layout(x), q, heads, 0.7).sum()

    def dense(x, q, k, v):
        pixels = layout(x).contiguous().flatten(2).mT.contiguous()
        read = published.project(0.7, function is project_onto)(pixels, k, v).mT.reshape(n, c, height, width)
        return read + published.tokenize(heads, 0.7)(pixels, q).sum()

    operands = base, queries, keys, values
    with use_path(path):
        assert_same(with_gradients(run, *operands), with_gradients(dense, *operands))


@pytest.mark.parametrize('memory_format', [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize('function', [project, project_onto])
def test_the_fast_path_keeps_the_memory_format(memory_format, function):
    x = torch.randn(2, 12, 5, 7).contiguous(memory_format=memory_format)
    with use_path('fused'):
        refined, gradients = with_gradients(function, x, *torch.randn(2, 2, 1, 5, 12))
    assert refined.is_contiguous(memory_format=memory_format)
    assert gradients[0].is_contiguous(memory_format=memory_format)


def whole_numbers(*shape, largest):
    return torch.randint(-largest, largest + 1, shape, dtype=torch.float64)


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16, torch.float16])
def test_sharp_attention_in_low_precision(path, order, dtype):
    """Logits to +-50 that every precision holds exactly, as whole numbers: what is left is the path's own error."""
    pixels = random_pixels(2, 60, 64, order)
    pixels.copy_(whole_numbers(*pixels.shape, largest=1))
    queries, keys = whole_numbers(5, 64, largest=3), whole_numbers(2, 1, 5, 64, largest=3)
    values = whole_numbers(2, 1, 5, 64, largest=2)
    assert 35 < (pixels @ queries.T).abs().max() < 100
    exact = with_gradients(published.tokenize(1, 1.0), pixels, queries)
    exact_read = with_gradients(published.project(1.0, True), pixels, keys, values)
    with use_path(path):
        ours = with_gradients(tokenize, pixels.to(dtype), queries.to(dtype))
        read = with_gradients(project_onto, pixels.to(dtype), keys.to(dtype), values.to(dtype))
    for own, other in ((ours, exact), (read, exact_read)):
        results = own[0], *own[1]
        assert {each.dtype for each in results} == {dtype}
        assert_near([each.double() for each in results], (other[0], *other[1]), 16 * torch.finfo(dtype).eps)


@pytest.mark.parametrize('path', PATHS)
def test_autocast_decides_the_precision(path):
    torch.manual_seed(0)
    pixels, queries = torch.randn(2, 30, 16), torch.randn(5, 16)
    keys, values = torch.randn(2, 1, 5, 16), torch.randn(2, 1, 5, 16)
    leaves = [tensor.requires_grad_() for tensor in (pixels, queries, keys, values)]
    with use_path(path), torch.autocast('cpu', dtype=torch.bfloat16):
        tokens, read = tokenize(pixels, queries), project_onto(pixels, keys, values)
        (tokens.sum() + read.sum()).backward()
        halves = [tensor.detach().bfloat16() for tensor in leaves]
        assert torch.equal(tokens, tokenize(*halves[:2]))
        assert torch.equal(read, project_onto(halves[0], *halves[2:]))
    assert tokens.dtype == read.dtype == torch.bfloat16
    assert all(leaf.grad.dtype == torch.float32 for leaf in leaves)


@pytest.mark.parametrize(('samples', 'chunks'), [(1, None), (3, 4)])
def test_pixels_are_summed_in_chunks(samples, chunks, monkeypatch):
    """Of a size that divides them; a prime number of them is left whole. Batches, too, as on a GPU."""
    monkeypatch.setattr(fused, 'LEAST_PIXELS', 1)
    if chunks:
        monkeypatch.setattr(fused, '_count_chunks', lambda pixels: chunks)
    for num_pixels in (60,) if chunks else (16 * 7, 15, 13, 17, 1):
        pixels, queries = random_pixels(samples, num_pixels, 8, 'pixel-major'), torch.randn(3, 8, dtype=torch.float64)
        with use_path('fused'):
            ours = with_gradients(tokenize, pixels, queries)
        assert_same(ours, with_gradients(published.tokenize(1, 1.0), pixels, queries))


def test_one_place_chooses():
    pixels = torch.zeros(1, 2, 3)
    automatic = current_path(pixels)
    with use_path('fused'):
        assert current_path(pixels) == 'fused'
        with use_path('plain'):
            assert current_path(pixels) == 'plain'
        assert current_path(pixels) == 'fused'
    assert current_path(pixels) == automatic
    on_gpu = SimpleNamespace(device=torch.device('cuda'), dtype=torch.float32)
    assert [current_path(on_gpu, projects=each) for each in (False, True)] == ['fused', 'plain']
    numbers = [SimpleNamespace(shape=(8, number, 64), is_cuda=True) for number in (196, 1024, 9)]
    assert [*map(fused._count_chunks, numbers)] == [1, 16, 1]  # of whole multiples of 8 pixels
    with pytest.raises(ValueError, match="no path 'fast': choose one of plain, fused, triton"), use_path('fast'):
        pass


def operands():
    """Pixels, queries, keys and values, all leaves."""
    pixels, sizes = random_pixels(2, 6, 4, 'pixel-major'), [(3, 4), (2, 1, 3, 4), (2, 1, 3, 4)]
    return [tensor.requires_grad_() for tensor in (pixels, *(torch.randn(size).double() for size in sizes))]


def levels_and_tokens(order, n=2):
    """Queries, keys, values and three levels."""
    tokens = [torch.randn(3, images, 4, 6, dtype=torch.float64) for images in (1, n, n)]
    return *tokens, *(random_pixels(n, p, 6, order) for p in (12, 5, 1))


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('order', ORDERS)
def test_levels_are_each_by_itself_with_gradients_of_gradients(path, order):
    operands = levels_and_tokens(order)
    function = published.run_levels(tokenize_levels, project_onto_levels)
    with use_path(path):
        assert_same(with_gradients(function, *operands), with_gradients(published.levels, *operands))
        leaves = [tensor.requires_grad_() for tensor in operands]
        ours = penalty_gradients(function, *leaves)
        with torch.no_grad():
            torch.testing.assert_close(function(*leaves), published.levels(*leaves))
    torch.testing.assert_close(ours, penalty_gradients(published.levels, *leaves), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('path', PATHS)
def test_levels_without_gradients_are_left_alone(path):
    """A frozen level, one that nobody reads, and one whose projection has no gradient."""
    queries, keys, values, *levels = levels_and_tokens('pixel-major')
    levels = [x.requires_grad_(i > 0) for i, x in enumerate(levels)]
    queries.requires_grad_()
    with use_path(path):
        tokens, passed = tokenize_levels(levels, queries)
        assert not passed[0].requires_grad
        _, second, third = project_onto_levels(passed, keys, values)
        (tokens.square().sum() + second.square().sum() + NoGradient.apply(third).sum()).backward()
    exact = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in (queries, *levels)]
    tokens = [published.tokenize(1, 1.0)(x, rows) for x, rows in zip(exact[1:], exact[0])]
    second = published.project(1.0, True)(exact[2], keys[1][:, None], values[1][:, None])
    (sum(each.square().sum() for each in tokens) + second.square().sum()).backward()
    torch.testing.assert_close([x.grad for x in (queries, *levels)], [x.grad for x in exact])


@pytest.mark.parametrize('path', PATHS)
def test_only_what_asks_for_a_gradient_gets_one(path):
    pixels, queries, *_ = operands()
    for leaf, other in ((pixels, queries), (queries, pixels)):
        other.requires_grad_(False)
        with use_path(path):
            (first,) = grad(tokenize(pixels, queries).square().sum(), leaf, create_graph=True)
        (exact,) = grad(published.tokenize(1, 1.0)(pixels, queries).square().sum(), leaf, create_graph=True)
        torch.testing.assert_close(grad(first.square().sum(), leaf), grad(exact.square().sum(), leaf))
        other.requires_grad_()


@pytest.mark.parametrize('path', PATHS)
def test_a_gradient_that_is_not_there_is_zero(path):
    pixels, queries, keys, values = operands()
    with use_path(path):
        outs = [tokenize(pixels, queries), project(pixels, keys, values), project_onto(pixels, keys, values)]
    loss = sum(NoGradient.apply(out).sum() for out in outs) + 3 * pixels.sum()
    loss.backward()
    torch.testing.assert_close(pixels.grad, torch.full_like(pixels, 3))
    assert all(leaf.grad is None or not leaf.grad.any() for leaf in (queries, keys, values))


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
    assert_near(ours, gradients(published.tokenize(1, 1.0), torch.float64), 0.01)
