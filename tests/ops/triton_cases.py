"""The Triton kernels against the published equations, in 16 bits, their trial, and the choice of path.

Run by ``test_triton.py`` in a process of its own.

With ``TRITON_INTERPRET=1`` the kernels run on a CPU, in Triton's interpreter, which must be chosen before Triton is
imported; otherwise on the GPU.
"""

import os
import warnings
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import published_operations as published
import pytest
import torch
from comparisons import assert_near
from published_operations import MAPS, NoGradient, direction_of, penalty_gradients, random_pixels, with_gradients

from vt import ops
from vt.ops import current_path, tokenize, triton_check, triton_kernels, triton_path, use_path

IS_INTERPRETED = os.environ.get('TRITON_INTERPRET') == '1'
DEVICE = 'cpu' if IS_INTERPRETED else 'cuda'
# N, P, C, L
SMALL = [(2, 35, 16, 5), (1, 1, 16, 1), (3, 7, 64, 2), (1, 430, 32, 8), (7, 150, 16, 3), (9, 40, 16, 17)]
LARGEST = [(1, 40, 128, 32), (1, 37, 256, 16)]
REAL = [] if IS_INTERPRETED else [(1, 200 * 304, 256, 8), (8, 38 * 25, 256, 8), (32, 196, 256, 16), (300, 196, 256, 16)]
DTYPES = [torch.bfloat16, torch.float16]
# In the interpreter every third, in which each shape comes with one precision or more, and each of these with all else.
CASES = [*product(SMALL + LARGEST + REAL, DTYPES, (True, False))][:: 3 if IS_INTERPRETED else 1]

if IS_INTERPRETED:
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


def on_kernels(function):
    def run(*operands):
        with use_path('triton'):
            return function(*operands)

    return run


FUNCTIONS = tokenize, ops.project, ops.project_onto, ops.tokenize_levels, ops.project_onto_levels
kernels = SimpleNamespace(**{function.__name__: on_kernels(function) for function in FUNCTIONS})


def operands(shape, dtype=torch.bfloat16, sharpness=1.0, shared=True):
    """Pixels, queries, keys and values, whose logits have about ``sharpness`` as their standard deviation."""
    n, p, c, num_tokens = shape
    pixels = random_pixels(n, p, c, 'pixel-major')
    queries = torch.randn(*(() if shared else (n,)), num_tokens, c, dtype=torch.float64) * sharpness / c**0.5
    keys = torch.randn(n, 1, num_tokens, c, dtype=torch.float64) * sharpness / c**0.5
    values = torch.randn(n, 1, num_tokens, c, dtype=torch.float64)
    return [tensor.to(DEVICE, dtype) for tensor in (pixels, queries, keys, values)]


def gradients_of(function, *inputs):
    value, gradients = with_gradients(function, *inputs)
    return [value, *gradients]


def assert_rounds_alone(ours, function, inputs, bounds):
    """Errors of the value and of each gradient within ``bounds``, by the Euclidean norm, in steps of the format."""
    step = torch.finfo(inputs[0].dtype).eps
    assert {tensor.dtype for tensor in ours} == {inputs[0].dtype}
    exact = gradients_of(function, *(tensor.double().cpu() for tensor in inputs))
    errors = [(own.double().cpu() - right).norm() / right.norm().clamp(min=1e-2) for own, right in zip(ours, exact)]
    assert all(error <= bound * step for error, bound in zip(errors, bounds, strict=True)), errors


@pytest.mark.parametrize(('shape', 'dtype', 'option'), CASES)
def test_both_operations_are_the_equations(shape, dtype, option):
    """With queries of all samples, and a residual, or without."""
    pixels, queries, keys, values = operands(shape, dtype, sharpness=2.0, shared=option)
    assert triton_path.supports(pixels, queries.shape[-2])
    ours = gradients_of(lambda x, q: kernels.tokenize(x, q, 1, 0.5), pixels, queries)
    assert_rounds_alone(ours, published.tokenize(1, 0.5), (pixels, queries), (0.5, 1, 1))

    function = kernels.project_onto if option else kernels.project
    ours = gradients_of(lambda x, k, v: function(x, k, v, 0.5), pixels, keys, values)
    assert_rounds_alone(ours, published.project(0.5, option), (pixels, keys, values), (0.5, 1, 1, 1))


LEVELS = [(70, 35, 9, 1), (3,)] + ([] if IS_INTERPRETED else [(200 * 304, 100 * 152, 50 * 76, 25 * 38)])


@pytest.mark.parametrize(('pixels', 'shared'), [*product(LEVELS, (True, False))])
def test_levels_are_each_by_itself(pixels, shared):
    """Of a launch, which divides the programs of a sample among them."""
    n, c, num_tokens = 2, 16, 5
    levels = [operands((n, p, c, num_tokens))[0] for p in pixels]
    tokens = [torch.randn(len(pixels), images, num_tokens, c) for images in (1 if shared else n, n, n)]
    inputs = [tensor.to(levels[0]) / c**0.5 for tensor in tokens] + levels
    function = published.run_levels(kernels.tokenize_levels, kernels.project_onto_levels)
    assert_rounds_alone(gradients_of(function, *inputs), published.levels, inputs, (0.5, *[1] * len(inputs)))
    value = function(*inputs)
    with torch.no_grad():
        assert torch.equal(function(*inputs), value)


def test_biases_get_the_sums_of_their_pixels_gradients():
    levels = [operands((2, p, 16, 4))[0].requires_grad_() for p in (70, 9)]
    queries, biases = torch.randn(2, 1, 4, 16).to(levels[0]), torch.randn(2, 16, device=DEVICE, requires_grad=True)
    tokens, passed = kernels.tokenize_levels(levels, queries, 1.0, biases)
    (tokens.sum() + sum(x.square().sum() for x in passed)).backward()
    for bias_gradient, x in zip(biases.grad, levels):
        torch.testing.assert_close(bias_gradient, x.grad.float().sum((0, 1)), rtol=0.02, atol=0.1)


def test_a_level_without_a_gradient():
    queries, keys, values = (torch.randn(2, 2, 4, 16).to(DEVICE, torch.bfloat16) for _ in range(3))
    levels = [operands((2, p, 16, 4))[0].requires_grad_(p > 9) for p in (40, 9)]
    tokens, passed = kernels.tokenize_levels(levels, queries.requires_grad_())
    assert not passed[1].requires_grad
    first, _ = kernels.project_onto_levels(passed, keys, values)
    (tokens.sum() + 2 * NoGradient.apply(first).sum()).backward()
    one, two = (tensor.clone() for tensor in (levels[0].grad, queries.grad))
    levels[0].grad = queries.grad = None
    kernels.tokenize_levels(levels, queries)[0].sum().backward()
    assert torch.equal(one, levels[0].grad)
    assert torch.equal(two, queries.grad)


@pytest.mark.parametrize('kind', MAPS)
@pytest.mark.parametrize('dtype', DTYPES[: 1 if IS_INTERPRETED else 2])
@pytest.mark.parametrize('shape', [(2, 70, 64, 5), *REAL])
def test_low_precision_rounds_and_nothing_more(kind, dtype, shape):
    """Rounding errs by a fifth of the format's step; the filters' gradients by as much of the pixels' mean, too."""
    pixels, queries, keys, values = operands(shape, dtype)
    pixels = MAPS[kind](pixels)
    deviation = pixels.double() - pixels.double().mean((0, 1))
    offset = (pixels.double().norm() / deviation.norm()).item()  # 1 for a map whose mean is 0
    tokenized = gradients_of(kernels.tokenize, pixels, queries)
    assert_rounds_alone(tokenized, published.tokenize(1, 1.0), (pixels, queries), (0.3, 0.5, 0.5 * offset))
    read = gradients_of(kernels.project_onto, pixels, keys, values)
    assert_rounds_alone(read, published.project(1.0, True), (pixels, keys, values), (0.3, 0.5, 0.5, 0.5))


@pytest.mark.parametrize('largest', [8.0, 64.0])
def test_peaked_attention_does_not_overflow_in_fp16(monkeypatch, largest):
    """Two pixels share the attention of a token; the gradient of its logits is large then."""
    monkeypatch.setitem(triton_path.BACKWARD, 'BLOCK_P', 1024 if IS_INTERPRETED else triton_path.BACKWARD['BLOCK_P'])
    pixels, queries = torch.randn(1, 2**14, 64).mul(0.1).half(), torch.zeros(1, 64).half()
    queries[0, 0] = 4
    pixels[0, 7], pixels[0, 9] = 2, -2
    pixels[0, (7, 9), 0] = 8
    leaves = [tensor.to(DEVICE).requires_grad_() for tensor in (pixels, queries)]
    tokens = kernels.tokenize(*leaves)
    gradients = torch.autograd.grad(tokens, leaves, torch.full_like(tokens, largest))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_weights_of_many_pixels_in_fp16(monkeypatch):
    """Weights of one in 262,144 are no less exact, in gradients that are scaled as a loss scaler does."""
    for how in (triton_path.FORWARD, triton_path.BACKWARD):
        monkeypatch.setitem(how, 'BLOCK_P', 2048 if IS_INTERPRETED else how['BLOCK_P'])  # for a fast interpreter
    pixels, queries, *_ = operands((1, 2**18, 16, 1), torch.float16)
    _, *ours = gradients_of(lambda x, q: 256 * kernels.tokenize(x, q), pixels, queries)
    exact = gradients_of(lambda x, q: 256 * published.tokenize(1, 1.0)(x, q), pixels.double(), queries.double())
    assert_near([own.double() for own in ours], exact[1:], 0.5 * torch.finfo(torch.float16).eps)


def test_logits_of_fifty_on_each_side():
    """Whole numbers, which 16 bits hold exactly: what is left is the kernels' own error."""
    pixels, queries, keys, values = operands((2, 70, 64, 4), torch.float16)
    for tensor, largest in ((pixels, 1), (queries, 3), (keys, 3), (values, 2)):
        tensor.copy_(torch.randint(-largest, largest + 1, tensor.shape))
    assert 30 < (pixels.float() @ queries.float().T).abs().max() < 100
    ours = gradients_of(kernels.tokenize, pixels, queries)
    assert_rounds_alone(ours, published.tokenize(1, 1.0), (pixels, queries), (0.5, 1, 2))
    ours = gradients_of(kernels.project, pixels, keys, values)
    assert_rounds_alone(ours, published.project(1.0), (pixels, keys, values), (0.5, 2, 2, 1))


def test_only_wanted_gradients_are_returned():
    """Pixels of frozen stages, and frozen tokens; the other gradients are the same."""
    pixels, queries, keys, values = operands(SMALL[0])
    cases = [(kernels.tokenize, (pixels, queries)), (kernels.project_onto, (pixels, keys, values))]
    for function, inputs in cases:
        every = gradients_of(function, *inputs)
        for wanted in (range(1), range(1, len(inputs))):
            leaves = [tensor.detach().requires_grad_(index in wanted) for index, tensor in enumerate(inputs)]
            value = function(*leaves)
            value.backward(direction_of(value))
            for index, leaf in enumerate(leaves):
                assert torch.equal(leaf.grad, every[1 + index]) if index in wanted else leaf.grad is None


def test_a_map_is_its_pixels_memory_order_is_kept_and_nothing_aliases():
    pixels, queries, keys, values = operands(SMALL[0])
    maps = pixels.mT.unflatten(-1, (5, 7)).requires_grad_()
    assert torch.equal(kernels.tokenize(maps, queries), kernels.tokenize(pixels, queries))
    for function in (kernels.project, kernels.project_onto):
        read = function(maps, keys, values)
        (gradient,) = torch.autograd.grad(read, maps, torch.ones((), device=DEVICE, dtype=read.dtype).expand_as(read))
        assert torch.equal(read.flatten(2).mT, function(pixels, keys, values))
        assert read.stride() == gradient.stride() == maps.stride()
        assert read.untyped_storage().data_ptr() != pixels.untyped_storage().data_ptr()


def test_strided_operands():
    """Pixels, tokens and gradients that are parts of larger tensors, and queries of one sample that are expanded."""
    pixels, queries, keys, values = operands((2, 70, 32, 6), torch.float16)
    pixels, queries, keys, values = pixels[:, ::2, 16:], queries[::2, 16:], keys[..., ::2, 16:], values[..., ::2, 16:]
    ours = gradients_of(kernels.tokenize, pixels, queries)
    assert_rounds_alone(ours, published.tokenize(1, 1.0), (pixels, queries), (0.5, 1, 1))
    ours = gradients_of(lambda *x: kernels.project(*x)[:, :, ::3], pixels, keys, values)
    assert_rounds_alone(ours, lambda *x: published.project(1.0)(*x)[:, :, ::3], (pixels, keys, values), (0.5, 1, 1, 1))
    assert torch.equal(kernels.tokenize(pixels, queries.expand(2, -1, -1)), kernels.tokenize(pixels, queries))
    one = gradients_of(kernels.tokenize, pixels[:1], queries.expand(1, -1, -1))
    assert one[2].shape == (1, 3, 16)


def test_runs_repeat_exactly():
    pixels, queries, keys, values = operands((2, 100, 32, 5))
    for function, inputs in ((kernels.tokenize, (pixels, queries)), (kernels.project, (pixels, keys, values))):
        first, second = (gradients_of(function, *inputs) for _ in range(2))
        assert all(torch.equal(own, other) for own, other in zip(first, second, strict=True))


class Pair(torch.nn.Module):
    """Both operations, the second on what the first gathered."""

    def forward(self, pixels, queries):
        with use_path('triton'):
            tokens = tokenize(pixels, queries, 1, 0.5).unsqueeze(1)
            return ops.project_onto(pixels, tokens, tokens, 0.5)


@pytest.mark.gpu
@pytest.mark.skipif(IS_INTERPRETED, reason='a compiler takes compiled kernels alone')
@pytest.mark.parametrize('dynamic', [False, True])
def test_compiles_as_one_graph(dynamic):
    pixels, queries, *_ = operands((2, 35, 64, 5))
    compiled = torch.compile(Pair(), fullgraph=True, dynamic=dynamic)
    for own, other in zip(gradients_of(compiled, pixels, queries), gradients_of(Pair(), pixels, queries), strict=True):
        torch.testing.assert_close(own, other)
        assert own.stride() == other.stride()


def test_autocast_casts_as_a_matrix_product():
    pixels, queries, keys, values = (tensor.float() for tensor in operands((2, 35, 16, 5)))
    with use_path('triton'), torch.autocast(DEVICE, torch.bfloat16):
        tokens, *gradients = gradients_of(tokenize, pixels, queries)
        read, *more = gradients_of(ops.project, pixels, keys.bfloat16(), values)
    assert tokens.dtype == read.dtype == torch.bfloat16
    assert [gradient.dtype for gradient in gradients + more] == [torch.float32] * 3 + [torch.bfloat16, torch.float32]
    torch.testing.assert_close(tokens, kernels.tokenize(pixels.bfloat16(), queries.bfloat16()), rtol=0, atol=0)


def test_gradients_of_gradients_equal_the_equations():
    pixels, queries, keys, values = (tensor.requires_grad_() for tensor in operands(SMALL[0], torch.float16))
    cases = [
        (kernels.tokenize, published.tokenize(1, 1.0), (pixels, queries)),
        (kernels.project, published.project(1.0), (pixels, keys, values)),
        (kernels.project_onto, published.project(1.0, True), (pixels, keys, values)),
    ]
    for ours, theirs, leaves in cases:
        exact = penalty_gradients(theirs, *(leaf.detach().double().cpu().requires_grad_() for leaf in leaves))
        assert_near([own.double().cpu() for own in penalty_gradients(ours, *leaves)], exact, 0.02)


def test_a_gradient_that_is_not_there_is_zero():
    pixels, queries, keys, values = (tensor.requires_grad_() for tensor in operands(SMALL[0]))
    outs = [kernels.tokenize(pixels, queries), kernels.project_onto(pixels, keys, values)]
    (sum(NoGradient.apply(out).sum() for out in outs) + 3 * pixels.sum()).backward()
    torch.testing.assert_close(pixels.grad, torch.full_like(pixels, 3))
    assert all(leaf.grad is None or not leaf.grad.any() for leaf in (queries, keys, values))


def test_what_the_kernels_cannot_take():
    pixels, *_ = operands((1, 4, 16, 2))
    assert triton_path.supports(pixels, 2)
    others = [(pixels, 2, 2), (pixels.float(), 2), (pixels.double(), 2), (pixels, 1000), (pixels[:, :0], 2)]
    others += [(torch.empty(1, 2**27, 16, dtype=pixels.dtype, device='meta'), 2)]  # offsets of 32 bits
    others += [(pixels.new_zeros(1, 2, c), 2) for c in (8, 24, 512)] + [(pixels.new_zeros(1, 16, 4).mT, 2)]
    for other in others:
        assert not triton_path.supports(*other)
        with use_path('triton'), pytest.raises(ValueError, match='the Triton kernels do not support'):
            tokenize(other[0], torch.zeros(other[1], other[0].shape[2], dtype=other[0].dtype), *other[2:])
    assert triton_path.supports(pixels.new_zeros(1, 2, 256), 16)
    assert not triton_path.supports(pixels.new_zeros(1, 2, 256), 17)
    assert triton_path.supports(pixels.new_zeros(1, 2, 128), 32)


@pytest.fixture(autouse=True)
def nothing_tried(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(triton_check, '_tried', {})


class Kernel(SimpleNamespace):
    """A kernel that is launched by another function of the grid and the operands."""

    def __getitem__(self, grid):
        return partial(self.launch, grid)


def spoil(name):
    """Wrong: an option of the kernel has no effect, or an operand another one."""

    def make_wrong(kernel):
        def launch(grid, *operands, **options):
            changed = dict(zip(kernel.arg_names, operands))
            if name == 'ONTO':
                options['ONTO'] = False
            elif name in ('keys', 'queries'):
                changed[name] = 2 * changed[name]
            elif name == 'Q':  # every sample has the queries of the first
                changed['Q'], changed['queries'] = 1, changed['queries'][:, :1].contiguous()
            kernel[grid](*changed.values(), **options)
            if name == 'sums':
                changed['sums'].mul_(7)

        return Kernel(launch=launch)

    return make_wrong


def fail(error):
    def launch(*operands, **options):
        raise error

    return lambda kernel: Kernel(launch=launch)


BROKEN = fail(RuntimeError('out of resources: shared memory'))
FULL = fail(torch.OutOfMemoryError('CUDA out of memory'))  # of a device whose memory others hold


@pytest.mark.parametrize(
    ('kernel', 'make_wrong', 'message'),
    [
        ('tokenize_kernel', spoil('queries'), 'tokens: they are off by'),
        ('project_kernel', spoil('keys'), 'read pixels: they are off by'),
        ('project_backward_kernel', spoil('keys'), 'dX: they are off by'),
        ('tokenize_backward_kernel', BROKEN, 'RuntimeError: out of resources'),
        ('tokenize_backward_kernel', spoil('sums'), 'sums of dX: they are off by'),
        ('tokenize_backward_kernel', spoil('ONTO'), 'dX: they are off by'),
        ('tokenize_kernel', spoil('Q'), 'tokens: they are off by'),
    ],
)
def test_a_wrong_kernel_is_left_out_with_one_warning(monkeypatch, kernel, make_wrong, message):
    monkeypatch.setattr(triton_kernels, kernel, make_wrong(getattr(triton_kernels, kernel)))
    pixels, queries, keys, values = operands(SMALL[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(2):
            assert current_path(pixels, 5) == 'fused'
            tokenized = gradients_of(tokenize, pixels, queries)
            read = gradients_of(ops.project_onto, pixels, keys, values)
    assert_rounds_alone(tokenized, published.tokenize(1, 1.0), (pixels, queries), (1, 2, 2))
    assert_rounds_alone(read, published.project(1.0, True), (pixels, keys, values), (1, 2, 2, 2))
    (warning,) = caught
    for part in (message, '16 channels, 5 tokens and torch.bfloat16', f'torch {torch.__version__}', 'Triton'):
        assert part in str(warning.message)


@pytest.mark.filterwarnings('error')
def test_right_kernels_are_taken():
    pixels, *_ = operands(SMALL[0])
    state = torch.get_rng_state()
    assert current_path(pixels, 5) == current_path(pixels.mT.unflatten(-1, (5, 7)), 5) == 'triton'
    assert torch.equal(torch.get_rng_state(), state)
    assert len(triton_check._tried) == 1
    for other in (pixels.float(), pixels.double(), pixels.mT.contiguous().mT):
        assert current_path(other, 5) == 'fused'


@pytest.mark.filterwarnings('error')
def test_a_full_memory_is_not_remembered(monkeypatch):
    pixels, *_ = operands(SMALL[0])
    with monkeypatch.context() as full:
        full.setattr(triton_kernels, 'project_kernel', FULL(triton_kernels.project_kernel))
        assert current_path(pixels, 5) == 'fused'
    assert current_path(pixels, 5) == 'triton'


def test_a_capture_meets_no_untried_kernel(monkeypatch):
    """Inside a CUDA graph's capture nothing can be tried; what was tried before it is taken."""
    with monkeypatch.context() as capture:
        capture.setattr(torch.cuda, 'is_current_stream_capturing', lambda: True)
        with pytest.warns(RuntimeWarning, match='not used in this CUDA graph: run the model once before the capture'):
            assert not triton_check._is_trusted('cuda', 0, torch.bfloat16, 16, 5)
        assert not triton_check._tried
        triton_check._tried['cuda', 0, torch.bfloat16, 16, 5] = True
        assert triton_check._is_trusted('cuda', 0, torch.bfloat16, 16, 5)


def test_the_choice_of_path_compiles():
    def sign(pixels):
        return pixels if current_path(pixels, 5) == 'triton' else -pixels

    pixels, *_ = operands(SMALL[0])
    assert torch.equal(torch.compile(sign, fullgraph=True, backend='eager', dynamic=True)(pixels), pixels)
    assert len(triton_check._tried) == 1


class Tokenize(torch.nn.Module):
    def forward(self, pixels, queries):
        return tokenize(pixels, queries)


def test_an_exported_program_has_no_kernels():
    pixels, queries, *_ = operands(SMALL[0])
    assert current_path(pixels, 5) == 'triton'
    exported = torch.export.export(Tokenize(), (pixels, queries), strict=True)
    assert all('triton' not in str(node.target) for node in exported.graph.nodes)
    torch.testing.assert_close(exported.module()(pixels, queries), tokenize(pixels, queries), rtol=0.02, atol=0.02)


def test_the_trial_can_be_left_out(monkeypatch):
    monkeypatch.setenv('VT_CHECK_KERNELS', '0')
    monkeypatch.setattr(triton_check, '_find_problem', None)
    assert current_path(operands(SMALL[0])[0], 5) == 'triton'
