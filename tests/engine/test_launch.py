"""SyncBN where there is nothing to synchronise, or no GPU: BN takes its place, and the log says so."""

import os
import subprocess
import sys

import pytest

# Runners of a small model, one for each norm that is asked for; each process writes down which layers it got.
SCRIPT = """
import os, sys
from pathlib import Path
from mmengine.config import Config
import vt
from vt.engine.launch import build_runner
launcher, *norms = sys.argv[1:]
for norm in norms:
    converted = norm == 'converted BN'
    norm_cfg = dict(type='BN' if converted else norm)
    backbone = dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=64, norm_cfg=norm_cfg)
    cfg = dict(
        model=dict(type='mmpretrain.ImageClassifier', backbone=backbone, neck=dict(type='vt.TokenAverage')),
        default_scope='mmpretrain', work_dir=norm, launcher=launcher, experiment_name=norm,
    )
    if converted:
        cfg['sync_bn'] = 'torch'
    runner = build_runner(Config(cfg))
    layers = {type(part).__name__ for part in runner.model.modules() if 'Norm' in type(part).__name__}
    Path(norm, f'layers_{os.environ.get("RANK", 0)}').write_text(' '.join(sorted(layers)))
"""


def build_runners(launcher, *norms, cwd):
    """For each norm: the kind of layers of each process, and the lines of the log about SyncBN."""
    script = cwd / 'script.py'
    script.write_text(SCRIPT)
    command = [sys.executable, script, launcher, *norms]
    if launcher == 'pytorch':
        command[1:1] = ['-m', 'torch.distributed.run', '--nproc-per-node', '2', '--master-port', '29631']
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    layers = [[path.read_text() for path in (cwd / norm).glob('layers_*')] for norm in norms]
    logs = [path.read_text().splitlines() for norm in norms for path in (cwd / norm).rglob('*.log')]
    return layers, [[line for line in log if 'SyncBN is BN here' in line] for log in logs]


def test_one_process_says_that_sync_bn_is_bn_and_nothing_of_bn(tmp_path):
    layers, (of_bn, of_sync_bn) = build_runners('none', 'BN', 'SyncBN', cwd=tmp_path)
    assert layers == [['BatchNorm2d'], ['_BatchNormXd']]  # mmengine's own for a layer that it reverts
    assert not of_bn
    assert len(of_sync_bn) == 1
    assert 'INFO' in of_sync_bn[0]
    assert 'there is one process' in of_sync_bn[0]


@pytest.mark.parametrize('norm', ['SyncBN', 'converted BN'])
def test_two_processes_without_gpus_say_that_sync_bn_is_bn(norm, tmp_path):
    (layers,), ((line,),) = build_runners('pytorch', norm, cwd=tmp_path)
    assert layers == ['BatchNorm2d', 'BatchNorm2d']
    assert 'each of the 2 processes' in line
