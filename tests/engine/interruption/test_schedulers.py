"""Every scheduler of mmengine goes on as if there had been no interruption."""

import pytest
import torch
from engine.interruption.small_runs import Recorder, train_small
from mmengine.optim import scheduler as mmengine_schedulers

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


def train(folder, schedulers, **options):
    """Epochs of two iterations, and what they went through."""
    recorder = Recorder()
    runner = train_small(folder, hooks=[recorder], param_scheduler=schedulers, **options)
    return recorder.values, runner.model.state_dict()


def test_all_schedulers_are_tried():
    assert {f'{kind}{value}' for kind in STEPS for value in ('LR', 'Momentum')} - {'OneCycleMomentum'} == NAMES


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


@pytest.fixture(scope='module')
def before(tmp_path_factory):
    """The folder of a run with a schedule, a learning rate and a momentum of its own."""
    schedulers = [dict(type='ExponentialLR', gamma=0.7), dict(type='LinearMomentum', by_epoch=False, end=5)]
    folder = tmp_path_factory.mktemp('before')
    train(folder, schedulers, optimizer=dict(type='SGD', lr=0.3, momentum=0.9))
    return folder


@pytest.mark.parametrize('kind', [*NEW, 'None'])
def test_a_new_schedule_is_where_it_would_have_been_from_the_start(kind, before, tmp_path):
    expected, _ = train(tmp_path / 'whole', NEW.get(kind))
    for epoch in (1, 3):
        options = dict(load_from=before / f'epoch_{epoch}.pth', resume=True, new_schedule=True)
        assert train(tmp_path / f'resumed_{epoch}', NEW.get(kind), **options)[0] == expected[2 * epoch :]
