"""How the Triton kernels are chosen: their trial, and the choice of path. Run as ``triton_cases.py`` is."""

import warnings
from functools import partial

import pytest
import torch
from published_operations import published_project, published_tokenize
from triton_cases import assert_rounds_alone, gradients_of, operands

from vt.ops import current_path, project_onto, tokenize, triton_check, triton_kernels, triton_path

SHAPE = (2, 35, 16, 5)


@pytest.fixture(autouse=True)
def nothing_tried(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(triton_check, '_tried', {})


class Kernel:
    """A kernel that is launched by another function of the grid and the operands."""

    def __init__(self, launch):
        self.launch = launch

    def __getitem__(self, grid):
        return partial(self.launch, grid)


def make_sharper(kernel):
    """Wrong: its operand is twice as large."""
    return Kernel(lambda grid, x, size, tokens, *rest, **options: kernel[grid](x, size, 2 * tokens, *rest, **options))


def fail(error):
    def launch(*operands, **options):
        raise error

    return lambda kernel: Kernel(launch)


BROKEN = fail(RuntimeError('out of resources: shared memory'))
FULL = fail(torch.OutOfMemoryError('CUDA out of memory'))  # of a device whose memory others hold


@pytest.mark.parametrize(
    ('kernel', 'make_wrong', 'message'),
    [
        ('tokenize_kernel', make_sharper, 'tokens are off by'),
        ('project_kernel', make_sharper, 'read pixels are off by'),
        ('project_backward_kernel', make_sharper, 'their dX are off by'),
        ('tokenize_backward_kernel', BROKEN, 'RuntimeError: out of resources'),
    ],
)
def test_a_wrong_kernel_is_left_out_with_one_warning(monkeypatch, kernel, make_wrong, message):
    monkeypatch.setattr(triton_kernels, kernel, make_wrong(getattr(triton_kernels, kernel)))
    pixels, queries, keys, values = operands(SHAPE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(2):
            assert current_path(pixels, 5) == 'fused'
            tokenized = gradients_of(tokenize, pixels, queries)
            read = gradients_of(project_onto, pixels, keys, values)
    assert_rounds_alone(tokenized, published_tokenize(1, 1.0), (pixels, queries), (1, 2, 2))
    assert_rounds_alone(read, published_project(1.0, True), (pixels, keys, values), (1, 2, 2, 2))
    (warning,) = caught
    for part in (message, '16 channels, 5 tokens and torch.bfloat16', f'torch {torch.__version__}', 'Triton'):
        assert part in str(warning.message)


@pytest.mark.filterwarnings('error')
def test_right_kernels_are_taken():
    pixels, *_ = operands(SHAPE)
    state = torch.get_rng_state()
    assert current_path(pixels, 5) == current_path(pixels.mT.unflatten(-1, (5, 7)), 5) == 'triton'
    assert torch.equal(torch.get_rng_state(), state)
    assert len(triton_check._tried) == 1


@pytest.mark.filterwarnings('error')
def test_a_full_memory_is_not_remembered(monkeypatch):
    pixels, *_ = operands(SHAPE)
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


@pytest.mark.parametrize('dynamic', [False, True])
def test_the_choice_of_path_compiles(dynamic):
    def sign(pixels):
        return pixels if current_path(pixels, 5) == 'triton' else -pixels

    pixels, *_ = operands(SHAPE)
    assert torch.equal(torch.compile(sign, fullgraph=True, backend='eager', dynamic=dynamic)(pixels), pixels)
    assert len(triton_check._tried) == 1


class Tokenize(torch.nn.Module):
    def forward(self, pixels, queries):
        return tokenize(pixels, queries)


@pytest.mark.parametrize('strict', [False, True])
def test_an_exported_program_has_no_kernels(strict):
    pixels, queries, *_ = operands(SHAPE)
    assert current_path(pixels, 5) == 'triton'
    exported = torch.export.export(Tokenize(), (pixels, queries), strict=strict)
    assert all('triton' not in str(node.target) for node in exported.graph.nodes)
    torch.testing.assert_close(exported.module()(pixels, queries), tokenize(pixels, queries), rtol=0.02, atol=0.02)


def test_the_trial_can_be_left_out(monkeypatch):
    monkeypatch.setenv('VT_CHECK_KERNELS', '0')
    monkeypatch.setattr(triton_check, '_find_problem', None)
    assert current_path(operands(SHAPE)[0], 5) == 'triton'


def test_fp32_and_the_default_memory_format_are_left_to_others():
    pixels, *_ = operands(SHAPE)
    assert current_path(pixels.float(), 5) == current_path(pixels.mT.contiguous().mT, 5) == 'fused'
    assert current_path(pixels.double(), 5) == 'fused'
    assert not triton_path.supports(pixels.float(), 5)
