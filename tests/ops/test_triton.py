"""The Triton path: its numbers in the interpreter and on a GPU, and its compilation for GPUs that need not be here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vt.ops import triton_path
from vt.ops.triton_path import BACKWARD, FORWARD, divide

HERE = Path(__file__).parent


def run_cases(tmp_path, interpret):
    """Run ``triton_cases.py`` in a process of its own, where Triton isn't imported yet."""
    folders = shlex.join(map(str, (HERE.parent, HERE)))  # pytest splits them as a shell does
    options = ['-o', f'pythonpath={folders}', '-p', 'no:cacheprovider', '-p', 'no:xdist', '--noconftest', '-x']
    command = [sys.executable, '-m', 'pytest', HERE / 'triton_cases.py', *options, '--basetemp', tmp_path / 'cases']
    environment = os.environ | dict(TRITON_INTERPRET='1' if interpret else '0', OMP_NUM_THREADS='1')
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_numbers_in_the_interpreter(tmp_path):
    pytest.importorskip('triton')
    run_cases(tmp_path, interpret=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_numbers_on_the_gpu(tmp_path):
    run_cases(tmp_path, interpret=False)


def test_nothing_is_supported_on_a_cpu_or_without_triton(monkeypatch):
    assert not triton_path.supports(torch.zeros(1, 4, 16).bfloat16(), 2)
    monkeypatch.setenv('TRITON_INTERPRET', '1')  # with which the cases need it on a CPU
    monkeypatch.setitem(sys.modules, 'triton', None)
    assert not triton_path._can_run.__wrapped__('cpu', None)


# Samples and pixels of levels; on 132 processors the programs of a sample forward and backward.
PLACES = {(1, 14 * 14): (7, 13), (256, 14 * 14): (1, 1), (1, 200 * 304): (238, 254), (16, 200 * 304): (16, 16)}
PLACES |= {(1, 200 * 304, 100 * 152, 50 * 76, 25 * 38): (253, 253), (300, 200 * 304, 25 * 38): (2, 2)}


@pytest.mark.parametrize('size', PLACES)
def test_programs_fill_the_device(monkeypatch, size):
    monkeypatch.setattr(triton_path, 'num_programs', lambda *_: 2 * 132)
    levels = [torch.empty(size[0], pixels, 256, dtype=torch.bfloat16, device='meta') for pixels in size[1:]]
    places = [divide(levels, how) for how in (FORWARD, BACKWARD)]
    assert tuple(splits for _, splits in places) == PLACES[size]
    assert all(pixels == [*size[1:], *[0] * (5 - len(size))] for (*pixels, _), _ in places)
