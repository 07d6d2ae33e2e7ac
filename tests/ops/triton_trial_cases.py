"""How the Triton kernels are chosen: their trial, the choice of path, and the tuner. Run as ``triton_cases.py`` is."""

import warnings

import pytest
import torch
from literal_operations import literal_project, literal_tokenize
from triton_cases import FEWER_ORDERS, assert_near, gradients_of, operands

from vt.ops import current_path, project_onto, tokenize, triton_check, triton_launch, triton_path, triton_sizes
from vt.ops.triton_sizes import is_interpreted


@pytest.fixture
def small_trial(monkeypatch):
    """A trial of the kernels that the interpreter makes in a second, and hasn't made yet."""
    monkeypatch.setattr(triton_check, 'NUM_PIXELS', 40)
    monkeypatch.setattr(triton_check, 'BLOCKS', (32,))
    triton_check._try.cache_clear()
    yield
    triton_check._try.cache_clear()


@pytest.mark.filterwarnings('error:The Triton kernels')
@pytest.mark.parametrize('order', FEWER_ORDERS)
def test_the_choice_of_path_compiles_too(small_trial, order):
    pixels, queries, *_ = operands((2, 36, 12, 5), order)
    compiled = torch.compile(tokenize, fullgraph=True, backend='eager', dynamic=True)
    torch.testing.assert_close(compiled(pixels, queries), triton_path.tokenize(pixels, queries))


class Sharper:
    """A kernel that is wrong: it takes the logits twice."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        return lambda *tensors, scale, **others: self.kernel[grid](*tensors, scale=2 * scale, **others)


class Broken(Sharper):
    """A kernel that can't run."""

    def __getitem__(self, grid):
        raise RuntimeError('out of resources: shared memory')


@pytest.mark.parametrize(
    ('kernel', 'fault', 'message'),
    [
        ('tokenize_kernel', Sharper, 'tokens are off by'),
        ('project_backward_kernel', Sharper, "the pixels' gradients are off by"),
        ('tokenize_backward_kernel', Broken, 'RuntimeError: out of resources'),
    ],
)
def test_a_wrong_kernel_is_left_out_with_one_warning(small_trial, monkeypatch, kernel, fault, message):
    monkeypatch.setattr(triton_launch, kernel, fault(getattr(triton_launch, kernel)))
    pixels, queries, keys, values = operands((2, 35, 16, 5), 'pixel-major')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(2):
            assert current_path(pixels, 5) != 'triton'
            tokenized = gradients_of(tokenize, pixels, queries)
            read = gradients_of(project_onto, pixels, keys, values)
    assert_near(tokenized, literal_tokenize(1, 1.0), (pixels, queries), 3e-5)
    assert_near(read, literal_project(1.0, True), (pixels, keys, values), 3e-5)
    assert len(caught) == 1
    for part in (
        message,
        '16 channels (NHWC by 1), 5 tokens and torch.float32',
        f'torch {torch.__version__}',
        'Triton',
    ):
        assert part in str(caught[0].message)


@pytest.mark.filterwarnings('error')
def test_right_kernels_are_taken(small_trial):
    pixels, *_ = operands((2, 36, 16, 5), 'channel-major', torch.bfloat16)
    state = torch.get_rng_state()
    assert current_path(pixels, 5) == 'triton'
    assert torch.equal(torch.get_rng_state(), state)


def test_the_trial_can_be_left_out(small_trial, monkeypatch):
    monkeypatch.setenv('VT_CHECK_KERNELS', '0')
    monkeypatch.setattr(triton_check, '_find_problem', None)
    assert current_path(operands((2, 35, 16, 5), 'pixel-major')[0], 5) == 'triton'


@pytest.mark.skipif(not is_interpreted(), reason='a GPU measures by itself')
def test_the_choice_that_is_measured_gets_the_same_operands(monkeypatch):
    """Triton's own tuner, with a clock that always says the same."""
    autotune, measured = triton_launch.triton.autotune, []

    def with_that_clock(configs, key, cache_results):
        def clock(run, quantiles):
            run()
            measured.append(configs)
            return [1.0] * len(quantiles)

        return autotune(configs, key, do_bench=clock)

    monkeypatch.setattr(triton_launch.triton, 'autotune', with_that_clock)
    monkeypatch.setattr(triton_sizes, 'is_interpreted', lambda: False)
    pixels, queries, keys, values = operands((3, 20, 16, 5), 'pixel-major')
    ours = gradients_of(triton_path.tokenize, pixels, queries)
    assert_near(ours, literal_tokenize(1, 1.0), (pixels, queries), 3e-5)
    ours = gradients_of(triton_path.project_onto, pixels, keys, values)
    assert_near(ours, literal_project(1.0, True), (pixels, keys, values), 3e-5)
    assert len(measured) == 2 * 4  # two choices of four kernels
    triton_launch.tuned.cache_clear()
