"""SyncBN where there is nothing to synchronise: BN takes its place, and the log says so. Where there is, it stays."""

import os

from forked_tools import ForkedTool
from process_groups import free_port

# Runners of a small model, one for each norm that is asked for; each process writes down which layers it got.
SCRIPT = """
import os, sys
from pathlib import Path
from mmengine.config import Config
import vt
from vt.engine.launch import build_runner
from vt.engine.processes.distributed import join_processes
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
    cfg = Config(cfg)
    join_processes(cfg)
    runner = build_runner(cfg)
    layers = {type(part).__name__ for part in runner.model.modules() if 'Norm' in type(part).__name__}
    Path(norm, f'layers_{os.environ.get("RANK", 0)}').write_text(' '.join(sorted(layers)))
"""


def build_runners(processes, *norms, cwd):
    """For each norm: the kind of layers of each process, and the lines of the main one's log about SyncBN."""
    script = cwd / 'script.py'
    script.write_text(SCRIPT)
    places = [dict(RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(processes)]
    env = dict(os.environ, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1', WORLD_SIZE=str(processes))
    env |= dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()))
    started = [
        ForkedTool(script, 'auto', *norms, cwd=cwd, env=env | (place if processes > 1 else {})) for place in places
    ]
    results = [process.wait(120) for process in started]
    assert [result.returncode for result in results] == [0] * processes, results[0].stderr
    layers = [[path.read_text() for path in (cwd / norm).glob('layers_*')] for norm in norms]
    return layers, [line for line in results[0].stdout.splitlines() if 'SyncBN is replaced by BN' in line]


def test_one_process_says_that_sync_bn_is_bn_and_nothing_of_bn(tmp_path):
    layers, (line,) = build_runners(1, 'BN', 'SyncBN', cwd=tmp_path)
    assert layers == [['BatchNorm2d'], ['_BatchNormXd']]  # mmengine's own for a layer that it reverts
    assert 'INFO' in line
    assert 'there is one process' in line


def test_two_processes_without_gpus_synchronise(tmp_path):
    layers, lines = build_runners(2, 'BN', 'SyncBN', 'converted BN', cwd=tmp_path)
    assert layers == [['BatchNorm2d'] * 2, ['CPUSyncBatchNorm'] * 2, ['CPUSyncBatchNorm'] * 2]
    assert not lines
