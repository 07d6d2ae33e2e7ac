"""Runs of 2 and 4 processes are the run of one process with the same global batch, to rounding in double precision.

Each is trained by ``tools/train.py`` in real processes on CPUs. Validation has 9 samples, which no number of
processes divides.
"""

import json
import shutil

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from process_groups import run_processes
from tool_runner import ROOT

TOLERANCE = dict(rtol=1e-8, atol=1e-8)  # losses were seen to differ by 1e-11
# The advanced recipe without what draws random numbers in the model: teacher, moving average, gradients accumulated.
CLASSIFIER = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18-advanced_digits.py'
custom_imports = dict(imports=['vt', 'loss_recorder'])
custom_hooks = [dict(type='EMAHook', momentum=0.3, update_buffers=True), dict(type='LossRecorder')]
custom_hooks.append(dict(type='vt.ValidationLossHook'))
model = dict(
    backbone=dict(
        num_tokens=4, token_channels=32, base_channels=8, stem_channels=8, drop_path_rate=0.0,
        norm_cfg=dict(type='SyncBN'),
    ),
    head=dict(in_channels=32, dropout=0.0),
    teacher=dict(backbone=dict(base_channels=8, stem_channels=8), head=dict(in_channels=64)),
    teacher_checkpoint='teacher.pth',
)
optim_wrapper = dict(accumulative_counts=2)
train_dataloader = dict(batch_size=BATCH, num_workers=0, dataset=dict(indices=64))
val_dataloader = dict(batch_size=2, num_workers=0, dataset=dict(indices=9))
test_dataloader = val_dataloader
val_evaluator = dict(_delete_=True, type='MeanScore')
test_evaluator = val_evaluator
default_hooks = dict(checkpoint=dict(save_best=None))
train_cfg = dict(max_epochs=1)
"""
SEGMENTOR = f"""
_base_ = '{ROOT}/configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
custom_imports = dict(imports=['vt', 'loss_recorder'])
custom_hooks = [dict(type='LossRecorder'), dict(type='vt.ValidationLossHook')]
sync_bn = 'torch'
model = dict(
    backbone=dict(base_channels=8, stem_channels=8),
    neck=dict(in_channels=[8, 16, 32, 64], out_channels=32, token_channels=64),
    decode_head=dict(in_channels=[32] * 4, channels=32),
)
train_dataloader = dict(batch_size=BATCH, num_workers=0, dataset=dict(num_scenes=16))
val_dataloader = dict(batch_size=2, num_workers=0, dataset=dict(num_scenes=9))
test_dataloader = val_dataloader
val_evaluator = [dict(type='IoUMetric', iou_metrics=['mIoU']), dict(type='MeanScore')]
test_evaluator = val_evaluator
train_cfg = dict(max_iters=4, val_interval=4)
default_hooks = dict(checkpoint=dict(interval=4, save_best=None))
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """With the weights of a teacher."""
    folder = tmp_path_factory.mktemp('equal')
    cfg = Config.fromfile(write_config(folder, CLASSIFIER, 32), import_custom_modules=False)
    init_default_scope('mmpretrain')
    torch.save(dict(state_dict=MODELS.build(cfg.model.teacher).state_dict()), folder / 'teacher.pth')
    return folder


def write_config(folder, text, batch_size):
    path = folder / f'batch-size_{batch_size}.py'
    path.write_text(text.replace('BATCH', str(batch_size)))
    return path


def train(folder, text, batch_size, count):
    """Train in ``count`` processes: each one's losses, the last checkpoint, and the metrics of the validation."""
    config = write_config(folder, text, batch_size // count)
    out = folder / f'{count}_processes'
    shutil.rmtree(out, ignore_errors=True)
    results = run_processes(count, 'train.py', config, '--skip-data-check', '--work-dir', out, cwd=folder)
    assert [result.returncode for result in results] == [0] * count, '\n'.join(result.stderr for result in results)
    losses = [json.loads((out / f'losses_{rank}.json').read_text()) for rank in range(count)]
    checkpoint = torch.load((out / 'last_checkpoint').read_text(), weights_only=False)
    metrics = json.loads((out / 'training.json').read_text())['metrics']
    return torch.tensor(losses, dtype=torch.float64), checkpoint, metrics


@pytest.mark.parametrize(('text', 'batch_size', 'count'), [(CLASSIFIER, 16, 4), (SEGMENTOR, 4, 2)])
def test_losses_weights_and_metrics_are_those_of_one_process(text, batch_size, count, folder):
    (losses,), checkpoint, metrics = train(folder, text, batch_size, 1)
    assert losses.unique().numel() == 4
    assert metrics['count'] == 9
    assert metrics['val/loss'] > 0
    losses_of_all, checkpoint_of_all, metrics_of_all = train(folder, text, batch_size, count)
    torch.testing.assert_close(losses_of_all.mean(0), losses, **TOLERANCE)
    for part in ('state_dict', 'optimizer', 'ema_state_dict'):
        torch.testing.assert_close(checkpoint_of_all.get(part), checkpoint.get(part), **TOLERANCE)
    assert metrics_of_all == pytest.approx(metrics, rel=1e-8)


def test_with_plain_bn_a_checkpoint_gives_the_metrics_of_its_validation(folder):
    """Each process has its own running statistics until then; the moving average has them too."""
    text = CLASSIFIER.replace("norm_cfg=dict(type='SyncBN')", "norm_cfg=dict(type='BN')")
    _, _, metrics = train(folder, text, 8, 2)
    del metrics['val/loss']  # of trainings alone
    buffers = [torch.load(folder / f'2_processes/buffers_{rank}.pth') for rank in range(2)]
    variances = [name for name in buffers[0] if 'running_var' in name]
    assert 0 < sum('average.' in name for name in variances) < len(variances)
    torch.testing.assert_close(*buffers, rtol=0, atol=0)
    checkpoint = (folder / '2_processes/last_checkpoint').read_text()
    arguments = [write_config(folder, text, 4), checkpoint, '--out', 'metrics.json']
    (result,) = run_processes(1, 'test.py', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert json.loads((folder / 'metrics.json').read_text()) == pytest.approx(metrics, rel=1e-8)
