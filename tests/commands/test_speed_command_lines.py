"""What the command lines set for speed: the log says it, and each can be turned off."""

import os
import subprocess
import sys
from argparse import Namespace

import pytest
import torch
from forked_tools import run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER, succeed

from vt.commands.arguments import run

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'
OFF = ['speed.channels_last=False', 'speed.keep_memory=False', 'speed.token_products=onednn']


def speed_line(result):
    (line,) = [line for line in succeed(result).stdout.splitlines() if 'Speed: ' in line]
    return line.split('Speed: ')[1]


@pytest.mark.skipif(' ' in torch.__file__, reason="we refuse to compile with a space in PyTorch's path")
def test_settings_turned_off_and_on_again(tmp_path, monkeypatch):
    """A run goes on with other settings, and with averaged weights and optimizer states of another layout."""
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    config = tmp_path / 'averaged.py'
    config.write_text(f"_base_ = {str(CONFIG)!r}\ncustom_hooks = [dict(type='EMAHook')]\n")
    arguments = [config, '--work-dir', 'run', '--no-validate']
    options = [*SMALL_CLASSIFIER, *OFF, 'train_cfg.max_epochs=1', 'optim_wrapper.optimizer.fused=True']
    line = speed_line(run_forked('train.py', *arguments, cwd=tmp_path, options=options))
    assert line.startswith('freed memory not kept; 1 thread; --amp off; --cfg-options speed: channels_last=False, ')
    assert 'token_products=onednn' in line
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=2', 'optim_wrapper.optimizer.fused=True']
    options += ['randomness.deterministic=True']
    line = speed_line(run_forked('train.py', *arguments, '--resume', '--amp', cwd=tmp_path, options=options))
    assert '--amp bfloat16; --cfg-options speed: channels_last=True, ' in line
    assert 'token_products=blas' in line  # where randomness is deterministic, nothing is measured
    options = [*SMALL_CLASSIFIER, 'speed.compile.backend=eager', 'test_dataloader.dataset.indices=8']
    arguments = [config, 'run/epoch_2.pth', '--tta', '--work-dir', 'run']
    result = run_forked('test.py', *arguments, cwd=tmp_path, options=options)
    assert "compile={'backend': 'eager'}" in speed_line(result)
    assert 'accuracy/top1' in result.stdout


@pytest.mark.parametrize(
    ('chosen', 'name', 'expected'),
    [
        ({}, 'PYTORCH_NVML_BASED_CUDA_CHECK', '1'),  # look for a GPU without starting it
        ({'PYTORCH_NVML_BASED_CUDA_CHECK': '0'}, 'PYTORCH_NVML_BASED_CUDA_CHECK', '0'),
        ({}, 'GOMP_SPINCOUNT', '20000'),  # threads that wait sleep soon
        ({'GOMP_SPINCOUNT': '5'}, 'GOMP_SPINCOUNT', '5'),
        ({'OMP_WAIT_POLICY': 'active'}, 'GOMP_SPINCOUNT', None),
    ],
)
def test_what_the_environment_does_not_say_is_set(chosen, name, expected, monkeypatch):
    for variable in ('PYTORCH_NVML_BASED_CUDA_CHECK', 'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'):
        monkeypatch.setenv(variable, '')  # so that it is as before in the end
        monkeypatch.delenv(variable)
    for variable, value in chosen.items():
        monkeypatch.setenv(variable, value)
    found = []
    monkeypatch.setattr(sys.modules[__name__], 'command', lambda args: found.append(os.environ.get(name)))
    run(f'{__name__}:command', Namespace(traceback=False), package='')
    assert found == [expected]


command = None


def test_variables_are_set_before_pytorch_is_imported(tmp_path, monkeypatch):
    monkeypatch.delenv('GOMP_SPINCOUNT', raising=False)
    monkeypatch.delenv('OMP_WAIT_POLICY', raising=False)
    (tmp_path / 'config.py').write_text("import os\nprint('spins:', os.environ.get('GOMP_SPINCOUNT'))\n")
    command = [sys.executable, ROOT / 'tools/train.py', 'config.py']
    env = os.environ | dict(OMP_DISPLAY_ENV='verbose')
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert 'spins: 20000' in result.stdout
    if 'OMP_NUM_THREADS = ' in result.stderr:  # GNU OpenMP, as in PyTorch for Linux
        assert "GOMP_SPINCOUNT = '20000'" in result.stderr
