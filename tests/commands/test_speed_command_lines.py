"""What the command lines set for speed: the log says it, and each can be turned off."""

import os
import subprocess
import sys

import pytest
import torch
from forked_tools import run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
OFF = ['speed.channels_last=False', 'speed.keep_memory=False', 'speed.token_products=onednn']


def speed_line(result):
    assert result.returncode == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if 'Speed: ' in line]
    return line.split('Speed: ')[1]


@pytest.fixture(scope='module')
def config(tmp_path_factory):
    """The digits' config with an average of weights."""
    path = tmp_path_factory.mktemp('configs') / 'averaged.py'
    path.write_text(f"_base_ = {str(CONFIG)!r}\ncustom_hooks = [dict(type='EMAHook')]\n")
    return path


@pytest.mark.skipif(' ' in torch.__file__, reason="we refuse to compile with a space in PyTorch's path")
def test_settings_turned_off_and_on_again(config, tmp_path, monkeypatch):
    """A run goes on with other settings, and with averaged weights and optimizer states of another layout."""
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
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
    result = run_forked(
        'test.py', config, 'run/epoch_2.pth', '--tta', '--work-dir', 'run', cwd=tmp_path, options=options
    )
    assert "compile={'backend': 'eager'}" in speed_line(result)
    assert 'accuracy/top1' in result.stdout


@pytest.mark.parametrize('chosen', [None, '0'])
def test_tools_look_for_a_gpu_without_starting_it(chosen, tmp_path, monkeypatch):
    name = 'PYTORCH_NVML_BASED_CUDA_CHECK'
    monkeypatch.delenv(name, raising=False)
    if chosen:
        monkeypatch.setenv(name, chosen)
    (tmp_path / 'config.py').write_text(f"import os\nprint('asked by NVML:', os.environ[{name!r}])\n")
    result = run_forked('train.py', 'config.py', cwd=tmp_path)
    assert f'asked by NVML: {chosen or 1}' in result.stdout, result.stderr


@pytest.mark.parametrize(
    ('chosen', 'expected'), [({}, '20000'), ({'GOMP_SPINCOUNT': '5'}, '5'), ({'OMP_WAIT_POLICY': 'active'}, None)]
)
def test_threads_that_wait_sleep_soon(chosen, expected, tmp_path):
    environment = {
        name: value for name, value in os.environ.items() if name not in ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY')
    }
    (tmp_path / 'config.py').write_text("import os\nprint('spins:', os.environ.get('GOMP_SPINCOUNT'))\n")
    command = [sys.executable, ROOT / 'tools/train.py', 'config.py']
    variables = environment | chosen | dict(OMP_DISPLAY_ENV='verbose')
    result = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert f'spins: {expected}' in result.stdout
    if expected and 'OMP_NUM_THREADS = ' in result.stderr:  # GNU OpenMP, as in PyTorch for Linux
        assert f"GOMP_SPINCOUNT = '{expected}'" in result.stderr
