"""Losses that are not finite: warned of, never saved, and the end of a run when they stay."""

import re

import pytest
import torch
from bad_input.images import RGB, encode
from bad_input.small_runs import DIGITS, FOLDER, train
from mmengine.model import BaseModel
from mmengine.runner import Runner
from mmpretrain.structures import DataSample
from process_groups import run_processes
from tool_runner import assert_one_line
from torch import nn

from vt.engine.hooks.invalid_losses import FiniteLossHook, find_non_finite, why_not_save

NAN, INFINITE = float('nan'), float('inf')


class Losses(BaseModel):
    """A model whose losses are its data."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, inputs, data_samples=None, mode='loss'):
        return dict(loss=inputs[0].mean() + 0 * self.weight.nan_to_num().sum())


class CheckHook(FiniteLossHook):
    """Note after each iteration whether a checkpoint might be written."""

    def after_train_iter(self, runner, *args, **kwargs):
        super().after_train_iter(runner, *args, **kwargs)
        reasons.append(why_not_save(runner))


reasons = []


def run_losses(losses, tmp_path, patience):
    """Train on given losses, one an iteration, and note why each iteration must not be saved."""
    reasons.clear()
    names = [DataSample(metainfo=dict(img_path=f'{index}.png')) for index in range(len(losses))]
    data = [dict(inputs=torch.tensor([loss]), data_samples=name) for loss, name in zip(losses, names)]
    runner = Runner(
        Losses(),
        str(tmp_path),
        train_dataloader=dict(dataset=data, sampler=dict(type='DefaultSampler', shuffle=False), batch_size=1),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.0)),
        custom_hooks=[CheckHook(patience)],
        default_hooks=dict(checkpoint=None),
        experiment_name=tmp_path.name,
    )
    runner.train()


def test_a_loss_that_recovers_is_warned_of(tmp_path):
    run_losses([1.0, NAN, INFINITE, 2.0, -INFINITE], tmp_path, patience=3)
    refused = 'the loss is not finite'
    assert reasons == [None, refused, refused, None, refused]
    (log,) = tmp_path.glob('*/*.log')
    warnings = re.findall(r'The loss of iteration (\d) is (\S+) \((\d) in a row', log.read_text())
    assert warnings == [('2', 'nan', '1'), ('3', 'inf', '2'), ('5', '-inf', '1')]


@pytest.mark.parametrize(('patience', 'span'), [(1, 'in iterations 2 to 2'), (3, 'in iterations 2 to 4')])
def test_the_run_stops_after_so_many_in_a_row(patience, span, tmp_path):
    words = f'the loss was nan {span}; the last good checkpoint is none.* batch: 1.png'
    with pytest.raises(FloatingPointError, match=words):
        run_losses([1.0, NAN, NAN, NAN, 1.0], tmp_path, patience)
    torch.save(dict(meta=dict(epoch=1, iter=4)), tmp_path / 'epoch_1.pth')  # that the run has resumed from
    last = re.escape(f'the last good checkpoint is {tmp_path / "epoch_1.pth"} (continue with')
    with pytest.raises(FloatingPointError, match=last):
        run_losses([NAN, NAN, NAN], tmp_path, patience)


def test_a_weight_that_is_not_finite_is_named():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    model.register_buffer('mask', torch.tensor([-INFINITE]))  # infinite on purpose
    assert find_non_finite(model) is None
    model[1].running_var[1] = NAN
    assert find_non_finite(model) == '1.running_var'


def test_a_run_that_diverges_keeps_its_good_checkpoints(tmp_path):
    """The learning rate explodes in the second epoch; the first epoch's checkpoint is the last."""
    config = DIGITS.replace('max_epochs=1', 'max_epochs=6') + (
        "param_scheduler = [dict(type='MultiStepLR', milestones=[1], gamma=1e30, by_epoch=True)]\n"
    )
    result = train(tmp_path, config)
    words = r'the loss was (nan|inf) in iterations (\d+) to (\d+); the last good checkpoint is (.+?) \(continue with'
    message = re.search(words, result.stderr)
    assert_one_line(result, message.group())
    assert int(message[3]) - int(message[2]) == 2
    written = sorted((tmp_path / 'work_dirs/config').glob('*.pth'))
    assert written[-1].samefile(tmp_path / message[4])
    for path in written:
        weights = torch.load(path, weights_only=False)['state_dict']
        assert all(weight.isfinite().all() for weight in weights.values())
    assert 'No checkpoint is written: the loss is not finite' in result.stdout


SPOILT = (
    FOLDER.replace('max_epochs=1', 'max_epochs=4')
    .replace("dict(type='PackInputs')", "dict(type='Spoil'), dict(type='PackInputs')")
    .replace('batch_size=4', 'batch_size=1')
    + "custom_imports = dict(imports=['vt', 'bad_input.steps'])\n"
)


def test_of_two_processes_that_with_the_spoilt_files_names_them(tmp_path):
    """Every second image, those of rank 1, is spoilt."""
    for name in ('cat/a_good', 'cat/b_spoilt', 'dog/c_good', 'dog/d_spoilt'):
        (tmp_path / f'data/images/{name}.png').parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f'data/images/{name}.png').write_bytes(encode(RGB))
    (tmp_path / 'config.py').write_text(SPOILT)
    options = ['train_dataloader.sampler.shuffle=False']
    results = run_processes(2, 'train.py', 'config.py', cwd=tmp_path, options=options)
    message = 'error: rank 1: config.py: the loss was nan in iterations 1 to 3; the last good checkpoint is '
    assert_one_line(results[1], message)
    assert 'first such batch: data/images/cat/b_spoilt.png (' in results[1].stderr
    assert_one_line(results[0], 'error: rank 0: config.py: ')
