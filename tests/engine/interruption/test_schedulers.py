"""Every scheduler of mmengine goes on as if there had been no interruption."""

import re

import pytest
import torch
from checkpoints.small_models import build_runner
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.optim import scheduler as mmengine_schedulers
from mmengine.registry import METRICS

from vt.errors import UserError

STEPS = dict(
    Constant=dict(factor=0.5, end=3),
    CosineAnnealing=dict(T_max=6),
    CosineRestart=dict(periods=[3, 5], restart_weights=[1.0, 0.5], eta_min=0.0),
    Exponential=dict(gamma=0.9),
    Linear=dict(start_factor=0.1, end=5),
    MultiStep=dict(milestones=[1, 3], gamma=0.5),
    OneCycle=dict(eta_max=0.1, total_steps=8),
    Poly=dict(power=0.9, end=7),
    ReduceOnPlateau=dict(monitor='score', patience=0, factor=0.5),
    Step=dict(step_size=2, gamma=0.5),
)
NAMES = {name for name in mmengine_schedulers.__all__ if name.endswith(('LR', 'Momentum'))}


@METRICS.register_module('SmallScore', force=True)
class Score(BaseMetric):
    """One that never gets better."""

    def process(self, data_batch, data_samples):
        self.results.append(1.0)

    def compute_metrics(self, results):
        return dict(score=1.0)


class Recorder(Hook):
    """Learning rate and momentum of every iteration."""

    def __init__(self):
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        wrapper = runner.optim_wrapper
        self.values.append((*wrapper.get_lr()['lr'], *wrapper.get_momentum()['momentum']))


def train(folder, scheduler, lr=0.01, epochs=4, **options):
    """Epochs of two iterations, and what they went through."""
    loader = dict(dataset=dict(type='SmallPoints'), batch_size=4, num_workers=0, sampler=dict(type='DefaultSampler'))
    runner = build_runner(
        folder,
        dict(type='SGD', lr=lr, momentum=0.9),
        epochs=epochs,
        param_scheduler=scheduler,
        randomness=dict(seed=1),
        val_cfg=dict(),
        val_dataloader=loader,
        val_evaluator=dict(type='SmallScore'),
        default_hooks=dict(
            checkpoint=dict(type='vt.CheckpointHook', interval=1), resume=dict(type='vt.ResumeHook'), logger=None
        ),
        **options,
    )
    recorder = Recorder()
    runner.register_hook(recorder)
    runner.train()
    return recorder.values, runner.model.state_dict()


def test_all_schedulers_are_tried():
    tried = {f'{kind}{value}' for kind in STEPS for value in ('LR', 'Momentum')}
    assert tried - {'OneCycleMomentum'} == NAMES


@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize('kind', STEPS)
def test_it_goes_on(kind, by_epoch, tmp_path):
    names = sorted({f'{kind}LR', f'{kind}Momentum'} & NAMES)
    by_epoch = by_epoch or kind == 'ReduceOnPlateau'
    schedulers = [dict(type=name, by_epoch=by_epoch, **STEPS[kind]) for name in names]
    values, weights = train(tmp_path / 'whole', schedulers)
    path = tmp_path / 'whole/epoch_2.pth'
    assert torch.serialization.get_unsafe_globals_in_checkpoint(path) == []
    resumed, ends = train(tmp_path / 'resumed', schedulers, load_from=path, resume=True)
    assert all(len(set(numbers)) > 1 for numbers in list(zip(*values))[: len(names)])
    assert resumed == values[4:]
    assert all(torch.equal(weights[key], ends[key]) for key in weights)


WARM_UP = [
    dict(type='LinearLR', start_factor=0.1, end=1, by_epoch=True, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', T_max=3, begin=1, end=4, by_epoch=True, convert_to_iter_based=True),
]
NEW = {kind: [dict(type=f'{kind}LR', **STEPS[kind])] for kind in STEPS if kind != 'ReduceOnPlateau'}
NEW |= {'WarmUp': WARM_UP, 'Both': [dict(type='LinearLR', end=3, by_epoch=False), dict(type='StepLR', step_size=1)]}


@pytest.mark.parametrize('kind', [*NEW, 'None'])
@pytest.mark.parametrize('epoch', [1, 3])
def test_a_new_schedule_is_where_it_would_have_been_from_the_start(kind, epoch, tmp_path):
    """Whatever schedule, learning rate and momentum the checkpoint had."""
    before = [dict(type='ExponentialLR', gamma=0.7), dict(type='LinearMomentum', by_epoch=False, end=5)]
    train(tmp_path / 'before', before, lr=0.3)
    expected, _ = train(tmp_path / 'whole', NEW.get(kind))
    path = tmp_path / f'before/epoch_{epoch}.pth'
    resumed, _ = train(tmp_path / 'resumed', NEW.get(kind), load_from=path, resume=True, new_schedule=True)
    assert resumed == expected[2 * epoch :]


def test_another_schedule_is_refused_unless_it_is_asked_for(tmp_path):
    train(tmp_path / 'before', NEW['Exponential'])
    with pytest.raises(UserError, match=r'the checkpoint has other schedulers .* or add --new-schedule'):
        train(tmp_path / 'resumed', NEW['Poly'], load_from=tmp_path / 'before/epoch_2.pth', resume=True)


def test_a_schedule_that_ends_with_training_stays_where_it_was(tmp_path):
    """Its end is in no config, and the table tells the learning rate that it leads to."""
    schedule = [dict(type='PolyLR', power=1.0, eta_min=1e-3)]
    train(tmp_path / 'before', schedule)
    values, _ = train(tmp_path / 'longer', schedule, epochs=8, load_from=tmp_path / 'before/epoch_2.pth', resume=True)
    (log,) = (tmp_path / 'longer').glob('*/*.log')
    rows = [re.split(r'\s*\|\s*', line.strip('| \n')) for line in log.read_text().splitlines() if line.startswith('| ')]
    rows = {setting: cells for setting, *cells in rows}
    assert rows['train_cfg.max_epochs'] == ['4', '8', '8']
    had, asked, used = map(float, rows['learning rate, last iteration'])
    assert used == had == pytest.approx(values[-1][0])
    whole, _ = train(tmp_path / 'whole', schedule, epochs=8)
    assert asked == pytest.approx(whole[-1][0])
    had, asked, used = map(float, rows['learning rate, next iteration'])
    assert used == had == pytest.approx(values[0][0], rel=1e-5)
    assert asked == pytest.approx(whole[4][0], rel=1e-5) != had
