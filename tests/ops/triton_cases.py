"""The Triton kernels against the literal equations: run by ``test_triton.py`` in a process of its own.

With ``TRITON_INTERPRET=1`` the kernels run on a CPU, in Triton's interpreter, which must be chosen before Triton is
imported; otherwise on the GPU.
"""

import numpy as np
import pytest
import torch
from literal_operations import ORDERS, literal_project, literal_tokenize, random_pixels, with_gradients
from test_gradients import MAPS, NoGradient, penalty_gradients

from vt.ops import project, tokenize, triton_path, use_path
from vt.ops.triton_sizes import BLOCKS, is_interpreted, only

DEVICE = 'cpu' if is_interpreted() else 'cuda'
# N, P, C, L
SMALL = [(2, 35, 12, 5), (1, 1, 8, 1), (3, 7, 40, 2), (1, 130, 24, 8), (7, 150, 16, 3)]
LARGEST = [(1, 40, 70, 8), (2, 37, 256, 8)]
REAL = [] if is_interpreted() else [(1, 200 * 304, 256, 8), (4, 38 * 25, 256, 8), (3, 196, 256, 8)]
SHAPES = SMALL + LARGEST + REAL
# What each size of a block is tried on.
BLOCK_CASES = (
    [((1, 100, 24, 5), torch.float32)]
    if is_interpreted()
    else [((1, p, 256, 8), dtype) for p in (1, 196, 475, 950, 60_800) for dtype in (torch.float32, torch.bfloat16)]
)
# What the interpreter computes every time.
FEWER_ORDERS = [ORDERS[0], pytest.param(ORDERS[1], marks=[pytest.mark.slow] * is_interpreted())]


if is_interpreted():
    from triton import language as tl
    from triton.runtime import interpreter

    exact_dot = interpreter.InterpreterBuilder.create_dot

    def widened(handle):
        """Triton's interpreter keeps bf16 as its 16 bits, and its matrix product would take them for integers."""
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_dot(self, a, b, *rest):
        return exact_dot(self, widened(a), widened(b), *rest)

    exact_trunc = interpreter.InterpreterBuilder.create_fp_trunc

    def create_fp_trunc(self, handle, dtype):
        """To bf16 by rounding, as a GPU does it; the interpreter would cut the other bits off."""
        if dtype.scalar != tl.bfloat16:
            return exact_trunc(self, handle, dtype)
        bits = handle.data.astype(np.float32).view(np.uint32)
        return interpreter.TensorHandle(((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16), tl.bfloat16)

    interpreter.InterpreterBuilder.create_dot = create_dot
    interpreter.InterpreterBuilder.create_fp_trunc = create_fp_trunc


def operands(shape, order, dtype=torch.float32, sharpness=1.0, shared=True):
    """Pixels, queries, keys and values, whose logits have about ``sharpness`` as their standard deviation."""
    n, p, c, num_tokens = shape
    pixels = random_pixels(n, p, c, order)
    queries = torch.randn(*(() if shared else (n,)), num_tokens, c, dtype=torch.float64) * sharpness / c**0.5
    keys = torch.randn(n, 1, num_tokens, c, dtype=torch.float64) * sharpness / c**0.5
    values = torch.randn(n, 1, num_tokens, c, dtype=torch.float64)
    return [tensor.to(DEVICE, dtype) for tensor in (pixels, queries, keys, values)]


def direction_of(value):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(value.shape, dtype=torch.float64, generator=generator).to(value)


def gradients_of(function, *inputs):
    """Value and gradients; :func:`with_gradients` for tensors of any device."""
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    return [value.detach(), *torch.autograd.grad(value, leaves, direction_of(value))]


def assert_near(ours, function, inputs, tolerance):
    """Each tensor's largest error, relative to its largest element in float64."""
    value, gradients = with_gradients(function, *(tensor.double().cpu() for tensor in inputs))
    for own, exact, name in zip(ours, (value, *gradients), ('value', *'012'), strict=False):
        error = (own.double().cpu() - exact).abs().max() / exact.abs().max().clamp(min=1e-3)
        assert error <= tolerance, (name, error.item())


@pytest.mark.parametrize('order', FEWER_ORDERS)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize(('shared', 'sharpness'), [(True, 1.0), (False, 20.0)])
def test_tokenize_equals_the_equation(order, shape, shared, sharpness):
    pixels, queries, *_ = operands(shape, order, sharpness=sharpness, shared=shared)
    assert triton_path.supports(pixels, queries.shape[-2])
    ours = gradients_of(lambda x, q: triton_path.tokenize(x, q, 1, 0.7), pixels, queries)
    assert_near(ours, literal_tokenize(1, 0.7), (pixels, queries), 3e-5)


@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize(('residual', 'sharpness'), [(True, 1.0), (False, 20.0)])
def test_project_equals_the_equation(order, shape, residual, sharpness):
    pixels, _, keys, values = operands(shape, order, sharpness=sharpness)
    function = triton_path.project_onto if residual else triton_path.project
    ours = gradients_of(lambda x, k, v: function(x, k, v, 0.7), pixels, keys, values)
    assert_near(ours, literal_project(0.7, residual), (pixels, keys, values), 3e-5)


def relative_errors(ours, function, inputs):
    """Of the value and of each gradient, by the Euclidean norm."""
    value, gradients = with_gradients(function, *(tensor.double().cpu() for tensor in inputs))
    return [
        ((own.double().cpu() - exact).norm() / exact.norm().clamp(min=1e-3)).item()
        for own, exact in zip(ours, (value, *gradients))
    ]


@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('block_p', BLOCKS)
@pytest.mark.parametrize(('shape', 'dtype'), BLOCK_CASES)
def test_every_block_of_pixels(order, block_p, shape, dtype):
    """With two programs a sample; the last block isn't full."""
    pixels, queries, keys, values = operands(shape, order, dtype)
    if not triton_path.supports(pixels, shape[-1]):
        pytest.skip('left to another path')
    with only(block_p):
        tokenized = gradients_of(triton_path.tokenize, pixels, queries)
        read = gradients_of(triton_path.project_onto, pixels, keys, values)
    errors = relative_errors(tokenized, literal_tokenize(1, 1.0), (pixels, queries))
    errors += relative_errors(read, literal_project(1.0, True), (pixels, keys, values))
    assert max(errors) <= (3e-5 if dtype == torch.float32 else torch.finfo(dtype).eps), errors


@pytest.mark.parametrize('kind', MAPS)
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('shape', [(2, 70, 40, 5), *REAL])
def test_low_precision_rounds_and_nothing_more(kind, dtype, shape):
    """Rounding errs by a fifth of the format's step; the filters' gradients by as much of the pixels' mean, too."""
    pixels, queries, keys, values = operands(shape, ORDERS[dtype == torch.float16], dtype)
    pixels, step = MAPS[kind](pixels), torch.finfo(dtype).eps
    deviation = pixels.double() - pixels.double().mean((0, 1))
    offset = (pixels.double().norm() / deviation.norm()).item()  # 1 for a map whose mean is 0
    tokenized = gradients_of(triton_path.tokenize, pixels, queries)
    read = gradients_of(triton_path.project_onto, pixels, keys, values)
    assert {tensor.dtype for tensor in (*tokenized, *read)} == {dtype}
    errors = relative_errors(tokenized, literal_tokenize(1, 1.0), (pixels, queries))
    errors += relative_errors(read, literal_project(1.0, True), (pixels, keys, values))
    bounds = dict(tokens=0.3, pixels_by_tokens=0.5, queries=0.5 * offset)
    bounds |= dict(read=0.3, pixels_by_read=0.5, keys=0.5, values=0.5)
    for (name, bound), error in zip(bounds.items(), errors):
        assert error <= bound * step, (name, error / step)


@pytest.mark.parametrize('order', ORDERS)
def test_logits_of_fifty_on_each_side(order):
    """Such logits themselves have an error of 4e-6 in fp32, and their gradients are differences of such pixels."""
    pixels, queries, keys, values = operands((2, 70, 16, 4), order)
    pixels[..., 0], queries[..., 0], keys[..., 0] = pixels[..., 0].sign() * 50, 1.0, 1.0
    ours = gradients_of(triton_path.tokenize, pixels, queries)
    assert_near(ours, literal_tokenize(1, 1.0), (pixels, queries), 2e-4)
    keys[:, :, ::2, 0] = -1.0
    ours = gradients_of(triton_path.project, pixels, keys, values)
    assert_near(ours, literal_project(1.0), (pixels, keys, values), 2e-4)


@pytest.mark.parametrize('order', ORDERS)
@pytest.mark.parametrize('shape', [SMALL[0], LARGEST[0]])
def test_memory_order_is_kept_and_nothing_aliases(order, shape):
    pixels, _, keys, values = operands(shape, order)
    pixels.requires_grad_()
    for function in (triton_path.project, triton_path.project_onto):
        read = function(pixels, keys, values)
        (gradient,) = torch.autograd.grad(read, pixels, torch.ones((), device=DEVICE).expand_as(read))
        assert read.stride() == gradient.stride() == pixels.stride()
        assert read.untyped_storage().data_ptr() != pixels.untyped_storage().data_ptr()


@pytest.mark.parametrize('order', ORDERS)
def test_strided_operands(order):
    """Pixels, tokens and gradients that are parts of larger tensors."""
    pixels, queries, keys, values = operands((2, 70, 24, 6), order)
    pixels, queries, keys, values = pixels[:, ::2, 4:], queries[::2, 4:], keys[..., ::2, 4:], values[..., ::2, 4:]
    ours = gradients_of(triton_path.tokenize, pixels, queries)
    assert_near(ours, literal_tokenize(1, 1.0), (pixels, queries), 3e-5)
    ours = gradients_of(lambda *x: triton_path.project(*x)[:, :, ::3], pixels, keys, values)
    assert_near(ours, lambda *x: literal_project(1.0)(*x)[:, :, ::3], (pixels, keys, values), 3e-5)


def test_runs_repeat_exactly():
    pixels, queries, *_ = operands((2, 300, 32, 5), 'pixel-major')
    first, second = (gradients_of(triton_path.tokenize, pixels, queries) for _ in range(2))
    assert all(torch.equal(own, other) for own, other in zip(first, second))


class Pair(torch.nn.Module):
    """Both operations, the second on what the first gathered."""

    def forward(self, pixels, queries):
        tokens = triton_path.tokenize(pixels, queries, 1, 0.7).unsqueeze(1)
        return triton_path.project_onto(pixels, tokens, tokens, 0.7)


@pytest.mark.parametrize('order', FEWER_ORDERS)
@pytest.mark.parametrize('dynamic', [False, True])
def test_compiles_as_one_graph(order, dynamic):
    pixels, queries, *_ = operands((2, 35, 12, 5), order)
    compiled = torch.compile(Pair(), fullgraph=True, backend='aot_eager', dynamic=dynamic)
    for own, other in zip(gradients_of(compiled, pixels, queries), gradients_of(Pair(), pixels, queries)):
        torch.testing.assert_close(own, other)
        assert own.stride() == other.stride()


def test_exports():
    pixels, queries, *_ = operands((2, 35, 12, 5), 'pixel-major')
    exported = torch.export.export(Pair(), (pixels, queries))
    torch.testing.assert_close(exported.module()(pixels, queries), Pair()(pixels, queries))


@pytest.mark.parametrize('order', FEWER_ORDERS)
@pytest.mark.parametrize('shape', [(2, 35, 12, 5), (1, 9, 70, 8)])
def test_the_operators_keep_their_contract(order, shape):
    """Schema, fake tensors, autograd registration and AOT dispatch, as PyTorch itself checks them."""
    tensors = operands(shape, order, shared=False)
    pixels, queries, keys, values = (tensor.requires_grad_() for tensor in tensors)
    torch.library.opcheck(torch.ops.vt.triton_tokenize, (pixels, queries, 0.7))
    torch.library.opcheck(torch.ops.vt.triton_tokenize, (pixels, queries[0].detach().requires_grad_(), 0.7))
    torch.library.opcheck(torch.ops.vt.triton_project, (pixels, keys.squeeze(1), values.squeeze(1), 0.7, True))


def test_autocast_casts_as_a_matrix_product():
    pixels, queries, keys, values = operands((2, 35, 12, 5), 'pixel-major')
    with use_path('triton'), torch.autocast(DEVICE, torch.bfloat16):
        tokens, *gradients = gradients_of(tokenize, pixels, queries)
        read, *more = gradients_of(project, pixels, keys.bfloat16(), values)
    assert tokens.dtype == read.dtype == torch.bfloat16
    assert [gradient.dtype for gradient in gradients + more] == [torch.float32] * 3 + [torch.bfloat16, torch.float32]
    half = triton_path.tokenize(pixels.bfloat16(), queries.bfloat16())
    torch.testing.assert_close(tokens, half, rtol=0, atol=0)


@pytest.mark.parametrize('shape', [SMALL[0], LARGEST[0]])
def test_gradients_of_gradients_equal_the_equations(shape):
    pixels, queries, keys, values = (tensor.requires_grad_() for tensor in operands(shape, 'pixel-major'))
    cases = [
        (triton_path.tokenize, literal_tokenize(1, 1.0), (pixels, queries)),
        (triton_path.project, literal_project(1.0), (pixels, keys, values)),
        (triton_path.project_onto, literal_project(1.0, True), (pixels, keys, values)),
    ]
    for ours, theirs, leaves in cases:
        exact = penalty_gradients(theirs, *(leaf.detach().double().cpu().requires_grad_() for leaf in leaves))
        for own, other in zip(penalty_gradients(ours, *leaves), exact):
            assert (own.double().cpu() - other).abs().max() < 1e-4 * other.abs().max()


def test_a_gradient_that_is_not_there_is_zero():
    pixels, queries, keys, values = (tensor.requires_grad_() for tensor in operands(SMALL[0], 'pixel-major'))
    outs = [triton_path.tokenize(pixels, queries), triton_path.project_onto(pixels, keys, values)]
    (sum(NoGradient.apply(out).sum() for out in outs) + 3 * pixels.sum()).backward()
    torch.testing.assert_close(pixels.grad, torch.full_like(pixels, 3))
    assert all(leaf.grad is None or not leaf.grad.any() for leaf in (queries, keys, values))


def test_what_the_kernels_cannot_take():
    pixels, queries, keys, values = operands((1, 4, 16, 2), 'pixel-major')
    with pytest.raises(ValueError, match='one head, not 2'):
        triton_path.tokenize(pixels, queries, num_heads=2)
    with pytest.raises(ValueError, match=r'pixels are torch.float32 but the tokens torch.float16'):
        triton_path.project(pixels, keys.half(), values)
    assert not triton_path.supports(pixels, 2, num_heads=2)
    assert not triton_path.supports(pixels.double(), 2)
    assert not triton_path.supports(pixels, 1000)
    assert not triton_path.supports(pixels[:, :0], 2)
    assert not triton_path.supports(pixels.new_zeros(1, 2, 1024), 2)
    assert triton_path.supports(pixels.new_zeros(1, 2, 256), 8)
    assert not triton_path.supports(pixels.new_zeros(1, 2, 256), 16)
    assert triton_path.supports(pixels.new_zeros(1, 2, 256).bfloat16(), 16)
    assert triton_path.supports(pixels.new_zeros(1, 16, 6).bfloat16().mT, 2)
    assert not triton_path.supports(pixels.new_zeros(1, 16, 7).bfloat16().mT, 2)  # nothing wider than 16 bits to read
