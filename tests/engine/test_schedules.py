"""Schedules follow the length of a run."""

import math

import pytest
import torch
from checkpoints.small_models import build_runner
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS
from tool_runner import ROOT

SCHEDULES = ROOT / 'configs/_base_/schedules'


def linear(end, factor=0.01, by_epoch=True):
    """mmengine's own warm-up from the first step on."""
    kind = dict(type='LinearLR', start_factor=factor, by_epoch=by_epoch, end=end)
    return kind | (dict(convert_to_iter_based=True) if by_epoch else {})


def cosine(begin, end, by_epoch=True, **options):
    """mmengine's own decay up to the end."""
    kind = dict(type='CosineAnnealingLR', by_epoch=by_epoch, begin=begin, end=end, T_max=end - begin, **options)
    return kind | (dict(convert_to_iter_based=True) if by_epoch else {})


# mmengine's own schedules with every length written out, and how many iterations an epoch has here.
WRITTEN_OUT = {
    'adamw_bs1024-300e': ([linear(5, 1e-3), cosine(5, 300, eta_min=1e-5)], 7),
    'adamw_bs32-10e': ([linear(1), cosine(1, 10)], 57),
    'adamw_bs32-15e': ([linear(1), cosine(1, 15)], 45),
    'adamw_bs256-6e': ([linear(1), cosine(1, 6)], 45),
    'adamw_bs4096-300e': ([linear(70, 4e-5), cosine(70, 300, eta_min=1.6e-5)], 7),
    'adamw_bs512-200e': ([linear(30), cosine(30, 200, eta_min=1.6e-5)], 7),
    'adamw_bs8-1200': ([linear(120, by_epoch=False), cosine(120, 1200, by_epoch=False)], 0),
    'rmsprop_bs2048-400e': ([linear(5, 0.0625), dict(type='ExponentialLR', gamma=0.9875, begin=5, end=10**6)], 7),
    'sgd_bs256-90e': ([dict(type='MultiStepLR', milestones=[30, 60], gamma=0.1)], 7),
    'sgd_bs256-90e_clip': ([dict(type='MultiStepLR', milestones=[30, 60], gamma=0.1)], 7),
    'sgd_bs32-90k': (
        [
            linear(1000, 0.001, by_epoch=False),
            dict(type='MultiStepLR', by_epoch=False, milestones=[60000, 80000], gamma=0.1),
        ],
        0,
    ),
    'sgd_poly-160k': ([dict(type='PolyLR', by_epoch=False, power=0.9, eta_min=1e-4, end=160000)], 0),
    'sgd_poly-80k': ([dict(type='PolyLR', by_epoch=False, power=0.9, eta_min=1e-4, end=80000)], 0),
}


def rates(schedulers, loop, epoch_length, lr):
    """The learning rate of every iteration; lengths that are left open are mmengine's defaults, the run's own."""
    optimizer = OptimWrapper(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr))
    total = loop.get('max_iters') or loop.max_epochs * epoch_length
    built = []
    for scheduler in schedulers if isinstance(schedulers, list) else [schedulers]:
        end = loop.max_epochs if scheduler.get('by_epoch', True) else total
        arguments = dict(optimizer=optimizer, epoch_length=epoch_length)
        built.append(PARAM_SCHEDULERS.build(dict(end=end) | dict(scheduler), default_args=arguments))
    values = []
    for iteration in range(1, total + 1):
        values.append(optimizer.param_groups[0]['lr'])
        for scheduler in built:
            if not scheduler.by_epoch or iteration % epoch_length == 0:
                scheduler.step()
    return values


def read(name):
    return Config.fromfile(SCHEDULES / f'{name}.py')


def test_every_schedule_is_tried():
    assert {path.stem for path in SCHEDULES.glob('*.py')} == set(WRITTEN_OUT)


@pytest.mark.parametrize('name', WRITTEN_OUT)
def test_at_its_own_length_a_recipe_is_mmengines_schedule_to_the_last_bit(name):
    cfg = read(name)
    written_out, epoch_length = WRITTEN_OUT[name]
    lr = cfg.optim_wrapper.optimizer.lr
    found = rates(cfg.param_scheduler, cfg.train_cfg, epoch_length, lr)
    assert found == rates(written_out, cfg.train_cfg, epoch_length, lr)
    assert max(found) == pytest.approx(lr)


@pytest.mark.parametrize('epoch_length', [1, 2, 100])
@pytest.mark.parametrize('length', [0.5, 1.4, 3])
@pytest.mark.parametrize('name', WRITTEN_OUT)
def test_at_another_length_it_goes_from_the_recipes_first_rate_over_its_highest_to_its_last(name, length, epoch_length):
    cfg = read(name)
    lr = cfg.optim_wrapper.optimizer.lr
    if 'max_iters' in cfg.train_cfg and epoch_length > 1:
        pytest.skip('it has no epochs')
    whole = rates(cfg.param_scheduler, cfg.train_cfg, WRITTEN_OUT[name][1] or 1, lr)
    key = 'max_iters' if 'max_iters' in cfg.train_cfg else 'max_epochs'
    cfg.train_cfg[key] = math.ceil(cfg.train_cfg[key] * length)
    found = rates(cfg.param_scheduler, cfg.train_cfg, epoch_length, lr)
    assert found[0] == pytest.approx(whole[0])
    assert max(found) == pytest.approx(lr)
    # The last iteration of three is in the middle of a cosine, that of five near its end.
    tolerance = 0.5 if len(found) < 5 else 0.2 if len(found) < 10 else 0.06
    assert found[-1] == pytest.approx(whole[-1], abs=lr * tolerance)


class Recorder(Hook):
    """The learning rate of every iteration."""

    def before_run(self, runner):
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.values.append(runner.optim_wrapper.param_groups[-1]['lr'])


def train(folder, schedulers, epochs=1, runner='VTRunner', **options):
    """Train on two iterations an epoch; the learning rate of each."""
    hooks = dict(checkpoint=dict(type='vt.CheckpointHook'), logger=None)
    hooks = {} if runner == 'Runner' else dict(default_hooks=hooks)
    options = dict(randomness=dict(seed=1)) | hooks | options
    made = build_runner(folder, dict(type='SGD', lr=0.1), epochs, runner, param_scheduler=schedulers, **options)
    recorder = Recorder()
    made.register_hook(recorder)
    made.train()
    return recorder.values


RECIPE = [
    dict(type='vt.WarmUpLR', start_factor=0.01, by_epoch=True, length=1, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=1, convert_to_iter_based=True),
]


def batches_of(size):
    dataset, sampler = dict(type='SmallPoints'), dict(type='DefaultSampler')
    return dict(train_dataloader=dict(dataset=dataset, batch_size=size, num_workers=0, sampler=sampler))


def iterations(number):
    """A run of a loop over iterations."""
    checkpoint = dict(type='vt.CheckpointHook', by_epoch=False)
    hooks = dict(logger=None, checkpoint=checkpoint)
    return dict(train_cfg=dict(by_epoch=False, max_iters=number), default_hooks=hooks, **batches_of(2))


@pytest.mark.parametrize('runner', ['Runner', 'VTRunner'])
def test_an_epoch_of_one_iteration_warms_up_in_one(runner, tmp_path):
    """In mmengine's own runner too."""
    values = train(tmp_path / 'run', RECIPE, epochs=6, runner=runner, **batches_of(8))
    decay = [0.05 * (1 + math.cos(math.pi * step / 5)) for step in range(5)]
    assert values == pytest.approx([0.001, *decay])


@pytest.mark.parametrize('epochs', [1, 2, 7])
def test_epochs_of_two_iterations(epochs, tmp_path):
    values = train(tmp_path / 'run', RECIPE, epochs)
    decay = [0.05 * (1 + math.cos(math.pi * step / (2 * epochs - 2))) for step in range(2 * epochs - 2)]
    assert values == pytest.approx([0.001, 0.1, *decay])


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_a_run_as_short_as_can_be(number, tmp_path):
    schedulers = [
        by_iteration('vt.WarmUpLR', start_factor=0.01, length=2),
        by_iteration('vt.CosineAnnealingLR', begin=2),
    ]
    values = train(tmp_path / 'run', schedulers, **iterations(number))
    assert len(values) == number
    assert values[0] == pytest.approx(0.001)
    assert number == 1 or max(values) == pytest.approx(0.1)


def by_iteration(kind, **options):
    return dict(type=kind, by_epoch=False, **options)


@pytest.mark.parametrize(('counts', 'lr'), [(1, 0.05), (2, 0.1), (6, 0.3)])
def test_a_scaled_rate_counts_accumulated_batches(counts, lr, tmp_path):
    """Batches of 4; the rate, 0.1, is for 8."""
    wrapper = dict(accumulative_counts=counts, optimizer=dict(type='SGD', lr=0.1))
    scaling = dict(base_batch_size=8, enable=True)
    hooks = dict(logger=None, checkpoint=dict(type='vt.CheckpointHook'))
    made = build_runner(
        tmp_path, None, 1, optim_wrapper=wrapper, auto_scale_lr=scaling, param_scheduler=[], default_hooks=hooks
    )
    made.train()
    assert made.optim_wrapper.param_groups[0]['lr'] == pytest.approx(lr)
    assert made.cfg.auto_scale_lr == scaling
