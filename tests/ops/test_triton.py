"""The Triton path: its numbers in the interpreter and on a GPU, and its compilation for GPUs that need not be here."""

import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vt.ops import triton_path, triton_sizes
from vt.ops.triton_sizes import BACKWARD, FORWARD, MAX_TOKENS, Choice, choices, fits, plan

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / 'docs/benchmarks/kernels.json'
FEW_SPILLED_BYTES = 32  # of a thread: eight registers of 255


def run_python(*arguments, interpret):
    environment = os.environ | dict(TRITON_INTERPRET='1' if interpret else '0', OMP_NUM_THREADS='1')
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


def run_cases(tmp_path, *options, interpret):
    """Run the ``triton_*cases.py`` in a process of its own, where Triton isn't imported yet."""
    folders = shlex.join(map(str, (HERE.parent, HERE)))  # pytest splits them as a shell does
    options = ['-o', f'pythonpath={folders}', '-p', 'no:cacheprovider', '-p', 'no:xdist', '-x', *options]
    cases = map(str, HERE.glob('triton_*cases.py'))
    run = run_python('-m', 'pytest', *cases, *options, '--basetemp', str(tmp_path / 'cases'), interpret=interpret)
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


def pixels_of(n, num_pixels, c, dtype=torch.bfloat16):
    return torch.empty(n, num_pixels, c, dtype=dtype, device='meta')


def test_sizes_that_matter_fit():
    half, single = pixels_of(1, 196, 256), pixels_of(1, 196, 256, torch.float32)
    assert all(fits(half, num_tokens) for num_tokens in (8, 16))  # VT-FPN, VT-ResNet-18 and 34
    assert fits(single, 8)
    assert not fits(half, 2 * MAX_TOKENS[2])
    assert not fits(single, 2 * MAX_TOKENS[4])
    assert not fits(pixels_of(1, 196, 1024), 16)  # VT-ResNet-50 and 101: their gradients by matrix products


# Samples, pixels; the blocks that 132 processors measure forward and backward, and the splits.
PLANS = {
    (1, 14 * 14): ([16], [16], 13, 13),
    (8, 14 * 14): ([16], [16], 13, 13),
    (32, 14 * 14): ([32, 16], [32, 16], 7, 7),
    (256, 14 * 14): ([64, 32], [32, 16], 1, 1),
    (1, 25 * 38): ([16], [16], 60, 60),
    (1, 200 * 304): ([64, 32], [32, 16], 264, 264),
    (16, 200 * 304): ([64, 32], [32, 16], 16, 16),
}


@pytest.fixture
def h200(monkeypatch):
    """As many processors, and Triton not interpreted."""
    monkeypatch.setattr(triton_sizes, 'num_processors', lambda *_: 132)


@pytest.mark.parametrize('size', PLANS)
def test_programs_fill_the_device(h200, size):
    pixels = pixels_of(*size, 256)
    plans = plan(pixels, FORWARD), plan(pixels, BACKWARD)
    found = [[choice.BLOCK_P for choice in how.choices] for how in plans] + [how.splits for how in plans]
    assert found == list(PLANS[size])
    for how in plans:
        assert all(how.splits <= math.ceil(size[1] / choice.BLOCK_P) for choice in how.choices)  # none is idle


def test_deterministic_runs_measure_nothing(h200):
    pixels = pixels_of(32, 196, 256)
    torch.use_deterministic_algorithms(True)
    try:
        assert plan(pixels, FORWARD) == ((Choice(32, 8, 3),), 7)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def resources(tmp_path, monkeypatch):
    """The module that compiles kernels, with an empty cache of compiled ones."""
    pytest.importorskip('triton')
    monkeypatch.setenv('TRITON_CACHE_DIR', str(tmp_path))
    from vt.analysis.speed import kernel_resources

    return kernel_resources


def assert_light(row, resources):
    """Registers and shared memory suffice."""
    assert row['spilled_bytes'] <= FEW_SPILLED_BYTES, row
    assert row['shared_bytes'] <= resources.SHARED_KB[row['sm']] * 1024, row


def test_every_candidate_is_in_the_table_and_light(resources):
    rows = json.loads(TABLE.read_text())['results']
    taken = ('registers', 'spilled_bytes', 'shared_bytes')
    described = [{name: value for name, value in row.items() if name not in taken} for row in rows]
    assert described == [resources.describe(*candidate) for candidate in resources.candidates(resources.cases())]
    assert all(fits(case.pixels(), case.num_tokens) for case in resources.cases())
    for row in rows:
        assert_light(row, resources)


def test_candidates_are_few():
    for itemsize in (2, 4):
        for num_channels in (1, 12, 16, 64, 96, 256):
            assert 1 <= len(choices(num_channels, itemsize, BACKWARD)) <= 3
            assert 1 <= len(choices(num_channels, itemsize, FORWARD)) <= 3


def test_the_kernels_of_vt_fpn_compile(resources):
    """All that it can launch on an H100 or H200; the rest of the table is compiled by the slow test."""
    for candidate in resources.candidates([resources.Case(torch.bfloat16, 256, 8)]):
        assert_light(resources.measure(*candidate), resources)


@pytest.mark.slow
def test_the_table_is_of_these_kernels(resources):
    """Other versions of Triton may count a little differently; nothing may spill."""
    for candidate in resources.candidates(resources.cases()):
        assert_light(resources.measure(*candidate), resources)
