"""The Triton path: its numbers in the interpreter and on a GPU, and its compilation for GPUs that need not be here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vt.ops import triton_path
from vt.ops.triton_path import BACKWARD, FORWARD, count_splits

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
    pixels = torch.zeros(1, 4, 16).bfloat16()
    assert not triton_path.supports(pixels, 2)
    monkeypatch.setenv('TRITON_INTERPRET', '1')  # with which the cases need it on a CPU
    monkeypatch.setitem(sys.modules, 'triton', None)
    assert not triton_path._can_run.__wrapped__('cpu', None)


# Samples, pixels; on 132 processors the splits forward and backward.
SPLITS = {(1, 14 * 14): (7, 13), (256, 14 * 14): (1, 1), (1, 200 * 304): (264, 264), (16, 200 * 304): (16, 16)}


@pytest.mark.parametrize('size', SPLITS)
def test_programs_fill_the_device(monkeypatch, size):
    monkeypatch.setattr(triton_path, 'num_programs', lambda *_: 2 * 132)
    pixels = torch.empty(*size, 256, dtype=torch.bfloat16, device='meta')
    assert (count_splits(pixels, FORWARD), count_splits(pixels, BACKWARD)) == SPLITS[size]
