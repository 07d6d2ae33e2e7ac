"""Ways to spread a model over processes: each is the run of two plain processes, and goes on after a resume.

In double precision, from the same weights; SyncBN, so that one process alone is the same run too.
"""

import json

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from process_groups import run_processes
from tool_runner import ROOT, assert_one_line

import vt  # noqa: F401

RUN = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'
custom_imports = dict(imports=['vt', 'loss_recorder'])
custom_hooks = [dict(type='LossRecorder')]
model = dict(
    backbone=dict(
        num_tokens=4, token_channels=32, base_channels=16, stem_channels=16, norm_cfg=dict(type='SyncBN')
    ),
    head=dict(in_channels=32),
)
train_dataloader = dict(batch_size=8, dataset=dict(indices=32))
val_dataloader = dict(dataset=dict(indices=16))
test_dataloader = val_dataloader
train_cfg = dict(max_epochs=2)
load_from = 'first.pth'
"""
FLEXIBLE = "runner_type = 'FlexibleRunner'\nstrategy = dict(type='{}')\n"
OPTIMIZER = "optim_wrapper = dict(optimizer=dict(type='ZeroRedundancyOptimizer', optimizer_type='AdamW'))\n"


def write_run(folder, name, more=''):
    path = folder / f'{name}.py'
    path.write_text(RUN + more)
    return path


def train(folder, config, count, *arguments, options=()):
    """Train in ``count`` processes: the losses, averaged over them, and the last checkpoint."""
    out = folder / config.stem
    command = ['train.py', config, '--skip-data-check', '--work-dir', out, *arguments]
    results = run_processes(count, *command, cwd=folder, options=options)
    assert [result.returncode for result in results] == [0] * count, '\n'.join(result.stderr for result in results)
    losses = [json.loads((out / f'losses_{rank}.json').read_text()) for rank in range(count)]
    checkpoint = torch.load(out / 'epoch_2.pth', weights_only=False)
    checkpoint['state_dict'] = {name.removeprefix('module.'): value for name, value in checkpoint['state_dict'].items()}
    return torch.tensor(losses, dtype=torch.float64).mean(0), checkpoint


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """With the weights that all runs begin with."""
    folder = tmp_path_factory.mktemp('strategies')
    init_default_scope('mmpretrain')
    model = MODELS.build(Config.fromfile(write_run(folder, 'first'), import_custom_modules=False).model).double()
    model.init_weights()
    torch.save(dict(state_dict=model.state_dict()), folder / 'first.pth')
    return folder


@pytest.fixture(scope='module')
def plain(folder):
    return train(folder, write_run(folder, 'plain'), 2)


def assert_same_run(found, expected, losses=slice(None)):
    torch.testing.assert_close(found[0], expected[0][losses], rtol=1e-9, atol=1e-9)
    assert list(found[1]['state_dict']) == list(expected[1]['state_dict'])
    torch.testing.assert_close(dict(found[1]['state_dict']), dict(expected[1]['state_dict']), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(('strategy', 'count'), [('SingleDeviceStrategy', 1), ('DDPStrategy', 2)])
def test_mmengines_strategies(strategy, count, folder, plain):
    config = write_run(folder, strategy, FLEXIBLE.format(strategy))
    options = [f'train_dataloader.batch_size={16 // count}']
    assert_same_run(train(folder, config, count, options=options), plain)


def test_zero_trains_saves_and_resumes(folder, plain):
    config, name = write_run(folder, 'zero', OPTIMIZER), 'zero'
    whole = train(folder, config, 2)
    assert_same_run(whole, plain)
    resumed = train(folder, config, 2, '--resume', folder / name / 'epoch_1.pth')
    assert_same_run(resumed, whole, losses=slice(2, None))
    for part in (lambda checkpoint: checkpoint['state_dict'], lambda checkpoint: checkpoint['optimizer']['state']):
        torch.testing.assert_close(part(resumed[1]), part(whole[1]), rtol=0, atol=0)
    slower = ['optim_wrapper.optimizer.lr=0.0']
    _, stopped = train(folder, config, 2, '--resume', folder / name / 'epoch_1.pth', '--new-schedule', options=slower)
    first = torch.load(folder / name / 'epoch_1.pth', weights_only=False)['state_dict']
    weights = [key for key in stopped['state_dict'] if key.endswith('weight')]
    assert all(torch.equal(stopped['state_dict'][key], first[key]) for key in weights)
    assert {group['lr'] for group in stopped['optimizer']['param_groups']} == {0.0}


@pytest.mark.parametrize(
    ('more', 'message'),
    [
        (OPTIMIZER, 'ZeroRedundancyOptimizer is for several processes: start them with tools/dist_train.sh'),
        (FLEXIBLE.format('FSDPStrategy'), "FSDP is the key 'fsdp' (configs/_base_/strategies/fsdp.py)"),
    ],
)
def test_what_does_not_work_is_one_line(more, message, tmp_path, folder):
    config = write_run(tmp_path, 'wrong', more)
    (result,) = run_processes(1, 'train.py', config, '--work-dir', tmp_path / 'out', cwd=folder)
    assert_one_line(result, message)
