"""The Triton path: its numbers in the interpreter and on a GPU, and its compilation for GPUs that need not be here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vt.ops import triton_path
from vt.ops.triton_sizes import MAX_TOKENS, block_c, fits, is_wide, needed_shared_memory

HERE = Path(__file__).parent
DTYPES = {torch.float32: 'fp32', torch.bfloat16: 'bf16'}
CONSUMER, H100 = 99 * 1024, 227 * 1024  # bytes of shared memory that one program may take


def run_python(*arguments, interpret):
    environment = os.environ | dict(TRITON_INTERPRET='1' if interpret else '0', OMP_NUM_THREADS='1')
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


def run_cases(tmp_path, *options, interpret):
    """Run ``triton_cases.py`` in a process of its own, where Triton isn't imported yet."""
    folders = shlex.join(map(str, (HERE.parent, HERE)))  # pytest splits them as a shell does
    options = ['-o', f'pythonpath={folders}', '-p', 'no:cacheprovider', '-p', 'no:xdist', '-x', *options]
    cases = str(HERE / 'triton_cases.py')
    run = run_python('-m', 'pytest', cases, *options, '--basetemp', str(tmp_path / 'cases'), interpret=interpret)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_numbers_in_the_interpreter(tmp_path):
    pytest.importorskip('triton')
    run_cases(tmp_path, interpret=True)


@pytest.mark.slow
def test_more_numbers_in_the_interpreter(tmp_path):
    pytest.importorskip('triton')
    run_cases(tmp_path, '-m', 'slow', interpret=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_numbers_on_the_gpu(tmp_path):
    run_cases(tmp_path, interpret=False)


def test_without_triton_nothing_is_supported():
    question = 'supports(torch.zeros(1, 4, 16), 2)'
    code = f'import sys, torch; {{}}; from vt.ops.triton_path import supports; print({question})'
    answers = [run_python('-c', code.format(first), interpret=True) for first in ('1', 'sys.modules["triton"] = None')]
    assert [answer.stdout.split()[-1] for answer in answers] == ['True', 'False'], answers


def test_a_cpu_is_not_supported():
    assert not triton_path.supports(torch.zeros(1, 4, 16), 2)


def test_sizes_that_matter_fit():
    for itemsize in (2, 4):
        assert all(fits(256, num_tokens, itemsize, CONSUMER) for num_tokens in (8, 16))  # VT-FPN, VT-ResNet-18 and 34
        assert fits(1024, 16, itemsize, H100)  # VT-ResNet-50 and 101
        assert not fits(1024, 2 * MAX_TOKENS[itemsize], itemsize, H100)
        assert not fits(2048, 8, itemsize, H100)
    assert fits(1024, 32, 2, H100)
    assert not fits(1024, 16, 4, CONSUMER)


@pytest.fixture
def tuning(tmp_path, monkeypatch):
    """The module of the tuned kernels, with an empty cache of compiled ones."""
    pytest.importorskip('triton')
    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path))
    from vt.ops import triton_tuning

    return triton_tuning


def tuned_kernels(tuning):
    return [kernel for name, kernel in vars(tuning).items() if name.endswith('_kernel')]


def candidates(kernel, dtype, num_channels):
    pixels = torch.empty(1, dtype=dtype, device='meta')
    return kernel.early_config_prune(kernel.configs, dict(pixels=pixels), BLOCK_C=block_c(num_channels))


def test_every_size_has_a_configuration(tuning):
    kernels = tuned_kernels(tuning)
    assert len(kernels) == 6
    for kernel in kernels:
        for dtype in DTYPES:
            for num_channels in (1, 12, 16, 64, 96, 256, 300, 512, 1024):
                assert 1 <= len(candidates(kernel, dtype, num_channels)) <= 16, (
                    kernel.fn.__name__,
                    dtype,
                    num_channels,
                )


def compile_kernel(kernel, config, dtype, num_channels, num_tokens, architecture):
    """Machine code of one kernel for an architecture; its pixels are channel-major and 196, as VT-ResNet's are."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from vt.ops.triton_launch import sizes
    from vt.ops.triton_sizes import WIDE_BLOCK_C

    pixels = torch.empty(1, num_channels, 196, dtype=dtype, device='meta').transpose(1, 2)
    constants = sizes(pixels, num_tokens) | config.kwargs
    constants |= dict(SHARED_QUERIES=True, RESIDUAL=True, RELOAD=dtype == torch.float32)
    if 'attention' in kernel.fn.__name__:
        constants['BLOCK_C'] = WIDE_BLOCK_C
    numbers = dict(P='i32', size_class='i32', scale='fp32', log_sums='*fp32', tokens='*fp32')
    constants = {name: constants[name] for name in kernel.arg_names if name in constants}
    types = {name: numbers.get(name, f'*{DTYPES[dtype]}') for name in kernel.arg_names}
    types |= dict.fromkeys(constants, 'constexpr')
    aligned = {(i,): [['tt.divisibility', 16]] for i, kind in enumerate(types.values()) if kind.startswith('*')}
    options = dict(num_warps=config.num_warps, num_stages=config.num_stages)
    source = ASTSource(kernel.fn, types, constants, aligned)
    return triton.compile(source, target=GPUTarget('cuda', architecture, 32), options=options)


@pytest.mark.parametrize('architecture', [80, 90])
@pytest.mark.parametrize(
    ('dtype', 'num_channels', 'num_tokens'),
    [(torch.bfloat16, 256, 8), (torch.float32, 256, 8), (torch.bfloat16, 1024, 16)],
)
def test_every_kernel_compiles(tuning, architecture, dtype, num_channels, num_tokens):
    wide = is_wide(num_channels, num_tokens, dtype.itemsize)
    one_pass = [tuning.tokenize_backward_kernel, tuning.project_backward_kernel]
    two = [tuning.tokenize_attention_backward_kernel, tuning.project_attention_backward_kernel]
    for kernel in (tuning.tokenize_kernel, tuning.project_kernel, *(two if wide else one_pass)):
        configs = candidates(kernel, dtype, num_channels)
        smallest = min(configs, key=lambda config: (config.kwargs['BLOCK_P'], -config.num_warps, config.num_stages))
        compiled = compile_kernel(kernel, smallest, dtype, num_channels, num_tokens, architecture)
        assert compiled.asm['cubin']
        assert compiled.metadata.shared <= needed_shared_memory(num_channels, num_tokens, dtype.itemsize)
