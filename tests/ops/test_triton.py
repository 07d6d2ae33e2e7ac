"""The Triton path: its numbers in the interpreter and on a GPU, and its compilation for GPUs that need not be here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vt.ops import triton_check, triton_path
from vt.ops.triton_path import BACKWARD, FORWARD, count_splits

HERE = Path(__file__).parent


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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_numbers_on_the_gpu(tmp_path):
    run_cases(tmp_path, interpret=False)


def test_without_triton_nothing_is_supported():
    question = 'supports(torch.zeros(1, 4, 16).bfloat16(), 2)'
    code = f'import sys, torch; {{}}; from vt.ops.triton_path import supports; print({question})'
    answers = [run_python('-c', code.format(first), interpret=True) for first in ('1', 'sys.modules["triton"] = None')]
    assert [answer.stdout.split()[-1] for answer in answers] == ['True', 'False'], answers


def test_a_cpu_is_not_supported():
    assert not triton_path.supports(torch.zeros(1, 4, 16).bfloat16(), 2)


# Samples, pixels; on 132 processors the splits forward and backward.
SPLITS = {
    (1, 14 * 14): (7, 13),
    (8, 14 * 14): (7, 13),
    (32, 14 * 14): (7, 8),
    (256, 14 * 14): (1, 1),
    (1, 25 * 38): (30, 60),
    (1, 200 * 304): (264, 264),
    (16, 200 * 304): (16, 16),
}


@pytest.mark.parametrize('size', SPLITS)
def test_programs_fill_the_device(monkeypatch, size):
    monkeypatch.setattr(triton_path, 'num_programs', lambda *_: 2 * 132)
    pixels = torch.empty(*size, 256, dtype=torch.bfloat16, device='meta')
    assert (count_splits(pixels, FORWARD), count_splits(pixels, BACKWARD)) == SPLITS[size]


def test_a_compiled_program_trusts_what_was_tried_and_an_exported_one_does_not(monkeypatch):
    class Sign(torch.nn.Module):
        def forward(self, pixels):
            return pixels + 1 if triton_check.is_trusted(pixels, 5) else pixels * 2

    pixels = torch.ones(2, 3, 4)
    monkeypatch.setitem(triton_check._tried, ('cpu', None, torch.float32, 4, 5), True)
    torch.compiler.reset()
    assert torch.equal(torch.compile(Sign(), backend='eager', fullgraph=True)(pixels), pixels + 1)
    exported = torch.export.export(Sign(), (pixels,), strict=True).module()
    assert torch.equal(exported(pixels), pixels * 2)
