"""Schedules follow the length of a run, and one that does not fit it is a warning before the first iteration."""

import math
import re

import pytest
import torch
from checkpoints.small_models import build_runner
from engine.interruption.small_runs import Recorder, loader, log_of, train_small
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapper
from mmengine.registry import PARAM_SCHEDULERS
from tool_runner import ROOT

SCHEDULES = ROOT / 'configs/_base_/schedules'


def by_iteration(kind, **options):
    return dict(type=kind, by_epoch=False, **options)


def linear(end, factor=0.01):
    """mmengine's own warm-up from the first step on."""
    return dict(type='LinearLR', start_factor=factor, end=end, convert_to_iter_based=True)


def cosine(begin, end, **options):
    """mmengine's own decay up to the end."""
    return dict(
        type='CosineAnnealingLR', begin=begin, end=end, T_max=end - begin, convert_to_iter_based=True, **options
    )


# mmengine's own schedules with every length written out.
WRITTEN_OUT = {
    'adamw_bs1024-300e': [linear(5, 1e-3), cosine(5, 300, eta_min=1e-5)],
    'adamw_bs32-10e': [linear(1), cosine(1, 10)],
    'adamw_bs32-15e': [linear(1), cosine(1, 15)],
    'adamw_bs256-6e': [linear(1), cosine(1, 6)],
    'adamw_bs4096-300e': [linear(70, 4e-5), cosine(70, 300, eta_min=1.6e-5)],
    'adamw_bs512-200e': [linear(30), cosine(30, 200, eta_min=1.6e-5)],
    'adamw_bs8-1200': [
        by_iteration('LinearLR', start_factor=0.01, end=120),
        by_iteration('CosineAnnealingLR', begin=120, end=1200, T_max=1080),
    ],
    'rmsprop_bs2048-400e': [linear(5, 0.0625), dict(type='ExponentialLR', gamma=0.9875, begin=5, end=10**6)],
    'sgd_bs256-90e': [dict(type='MultiStepLR', milestones=[30, 60], gamma=0.1)],
    'sgd_bs256-90e_clip': [dict(type='MultiStepLR', milestones=[30, 60], gamma=0.1)],
    'sgd_bs32-90k': [
        by_iteration('LinearLR', start_factor=0.001, end=1000),
        by_iteration('MultiStepLR', milestones=[60000, 80000], gamma=0.1),
    ],
    'sgd_poly-160k': [by_iteration('PolyLR', power=0.9, eta_min=1e-4, end=160000)],
    'sgd_poly-80k': [by_iteration('PolyLR', power=0.9, eta_min=1e-4, end=80000)],
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


@pytest.mark.parametrize('name', sorted({path.stem for path in SCHEDULES.glob('*.py')} | WRITTEN_OUT.keys()))
def test_at_its_own_length_a_recipe_is_mmengines_schedule_to_the_last_bit(name):
    cfg = Config.fromfile(SCHEDULES / f'{name}.py')
    lr = cfg.optim_wrapper.optimizer.lr
    found = rates(cfg.param_scheduler, cfg.train_cfg, 7, lr)
    assert found == rates(WRITTEN_OUT[name], cfg.train_cfg, 7, lr)
    assert max(found) == pytest.approx(lr)


STEPS = dict(type='vt.MultiStepLR', milestones=[3, 6], of=9)
DECAY = dict(type='vt.ExponentialLR', gamma=0.5, of=4)
COOLED = dict(type='vt.CosineAnnealingLR', begin=1, cool_down=2)
WARM = dict(type='vt.WarmUpLR', start_factor=0.2)
LENGTHS = [
    (STEPS, [[1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01], [1, 0.1, 0.1, 0.01], [1]]),  # in the second rounded
    (DECAY, [[1, 0.25], [0.5 ** (epoch / 2) for epoch in range(8)]]),
    (COOLED, [[1, 1, 0.75, 0.25, 0.25, 0.25], [1, 1, 0.5], [1]]),  # the last two are too short for a cool-down
    (WARM | dict(length=9), [[0.2, 0.6, 1]]),
    (WARM | dict(length=1), [[0.2, 1, 1]]),
]


@pytest.mark.parametrize(('scheduler', 'runs'), LENGTHS)
def test_a_schedule_in_runs_of_other_lengths(scheduler, runs):
    """Its rate in each epoch, also where lengths become iterations."""
    for expected in runs:
        assert rates(scheduler, Config(dict(max_epochs=len(expected))), 1, 1.0) == pytest.approx(expected)
    if scheduler in (STEPS, COOLED):
        loop = Config(dict(max_epochs=len(runs[0])))
        found = rates(scheduler | dict(convert_to_iter_based=True), loop, 4, 1.0)
        assert found[::4][:4] == pytest.approx(runs[0][:4])
        assert {*found[-8:]} == {min(found)}


def train(folder, schedulers, epochs=1, **options):
    """Train on two iterations an epoch; the learning rate of each, and the warnings."""
    recorder = Recorder()
    defaults = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9), val_cfg=None, val_dataloader=None)
    train_small(folder, epochs, hooks=[recorder], param_scheduler=schedulers, val_evaluator=None, **defaults | options)
    found = [line for line in log_of(folder).splitlines() if ' ends ' in line or ' the learning rate of' in line]
    return [rate for rate, *_ in recorder.values], [line.split(' - WARNING - ')[1] for line in found]


RECIPE = [
    dict(type='vt.WarmUpLR', start_factor=0.01, by_epoch=True, length=1, convert_to_iter_based=True),
    dict(type='vt.CosineAnnealingLR', by_epoch=True, begin=1, convert_to_iter_based=True),
]


def iterations(number, **loop):
    """A run of a loop over iterations."""
    loop = dict(type='IterBasedTrainLoop', max_iters=number, **loop)
    data = loader(batch_size=2, sampler='InfiniteSampler')
    return dict(train_cfg=loop, checkpoint=dict(by_epoch=False), train_dataloader=data)


MMENGINES = dict(runner='Runner', default_hooks={}, train_cfg=dict(by_epoch=True, max_epochs=6))


@pytest.mark.parametrize(
    ('options', 'length', 'epochs'), [(MMENGINES, 1, 6), ({}, 1, 6), ({}, 2, 1), ({}, 2, 2), ({}, 2, 7)]
)
def test_a_warm_up_of_an_epoch_and_a_cosine(options, length, epochs, tmp_path):
    """Of epochs of one iteration too, and in mmengine's own runner."""
    values, _ = train(tmp_path, RECIPE, epochs, train_dataloader=loader(batch_size=8 // length), **options)
    steps = length * (epochs - 1)
    decay = [0.05 * (1 + math.cos(math.pi * step / steps)) for step in range(steps)]
    assert values == pytest.approx([0.001, 0.1][:length] + decay)


@pytest.mark.parametrize(
    ('schedulers', 'message'),
    [
        ([linear(1), cosine(1, 5)], 'CosineAnnealingLR ends after 5 of 7 epochs'),
        ([linear(1), cosine(1, 10)], 'CosineAnnealingLR ends after 10 epochs, but the run after 7'),
        (dict(type='CosineAnnealingLR', T_max=5), 'CosineAnnealingLR ends after 5 of 7 epochs'),  # and rises again
        (by_iteration('PolyLR', end=15), 'PolyLR ends after 7.5 epochs, but the run after 7'),
        (by_iteration('LinearLR', start_factor=1.0, end_factor=0.1, end=8), 'LinearLR ends after 4 of 7 epochs'),
        (dict(type='LinearLR', start_factor=0.1, end=1), 'LinearLR has a single step'),
        (dict(type='MultiStepLR', milestones=[3, 8]), 'MultiStepLR ends after 9 epochs, but the run after 7'),
        (dict(type='ExponentialLR', gamma=0.9, end=5), 'ExponentialLR ends after 5 of 7 epochs'),
        (dict(type='OneCycleLR', eta_max=0.1, total_steps=9), 'OneCycleLR ends after 9 epochs, but the run after 7'),
        (
            dict(type='CosineRestartLR', periods=[3, 5], restart_weights=[1, 0.5], eta_min=0.0),
            'CosineRestartLR ends after 8 epochs, but the run after 7',
        ),
        ([], None),
        (RECIPE, None),
        ([linear(1), cosine(1, 7)], None),
        (linear(3), None),
        (dict(type='MultiStepLR', milestones=[3, 6]), None),
        ([linear(1), dict(type='MultiStepLR', milestones=[3], end=5)], None),
        (dict(type='ExponentialLR', gamma=0.9, end=10**6), None),
        (dict(type='CosineAnnealingMomentum', T_max=3), None),
    ],
)
def test_what_does_not_fit_is_a_warning_with_the_last_rate(schedulers, message, tmp_path):
    """And what fits is none."""
    schedulers = schedulers if isinstance(schedulers, list) else [schedulers]
    values, warnings = train(tmp_path, schedulers, epochs=7)
    assert len(warnings) == (message is not None)
    for warning in warnings:
        assert warning.startswith(message)
        assert warning.endswith(f'the learning rate of the last iteration is {values[-1]:.3g}')


def test_epochs_in_a_loop_over_iterations_are_a_warning(tmp_path):
    options = dict(train_cfg=dict(type='IterBasedTrainLoop', max_iters=4), checkpoint=dict(by_epoch=False))
    values, (warning,) = train(tmp_path, [dict(type='MultiStepLR', milestones=[2])], **options)
    assert warning.startswith('MultiStepLR counts epochs but the run counts iterations')
    assert set(values) == {0.1}


@pytest.mark.parametrize('number', [6, 13])
def test_epochs_that_are_converted_end_with_a_run_by_iterations(number, tmp_path):
    """Of 4 iterations an epoch, the first of which are the warm-up."""
    values, warnings = train(tmp_path / 'run', RECIPE, **iterations(number))
    schedule = [by_iteration('LinearLR', start_factor=0.01, end=4)]
    schedule += [by_iteration('CosineAnnealingLR', begin=4, end=number, T_max=number - 4)]
    expected, _ = train(tmp_path / 'other', schedule, **iterations(number))
    assert (values, warnings) == (expected, [])


class AtEpochs(Hook):
    def before_train_epoch(self, runner):
        """What a run by iterations does once."""


@pytest.mark.parametrize(
    ('options', 'expected'),
    [
        (iterations(6, val_interval=1), ['train_cfg.val_interval=1 validates after each iteration']),
        (
            iterations(6) | dict(hooks=[AtEpochs()]),
            ['AtEpochs acts once per epoch, and a run by iterations has a single epoch'],
        ),
        (
            dict(checkpoint=dict(by_epoch=False, interval=4)),
            ['CheckpointHook.interval=4 counts iterations, and the ru'],
        ),
        (dict(checkpoint=dict(by_epoch=False, interval=3), hooks=[AtEpochs()]), []),
        (iterations(6, val_interval=2), []),
    ],
)
def test_what_counts_in_the_other_unit_is_a_warning(options, expected, tmp_path):
    """A plateau counts validations, and is none."""
    plateau = [dict(type='ReduceOnPlateauLR', monitor='score', rule='greater', patience=0, factor=0.5)]
    train_small(tmp_path, 2, param_scheduler=plateau, **options)
    lines = re.findall(r'WARNING - (.*(?: counts | acts |each iteration).*)', log_of(tmp_path))
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


@pytest.mark.parametrize(('counts', 'lr'), [(1, 0.05), (2, 0.1), (6, 0.3)])
def test_a_scaled_rate_counts_accumulated_batches(counts, lr, tmp_path):
    """Batches of 4; the rate, 0.1, is for 8."""
    wrapper = dict(accumulative_counts=counts, optimizer=dict(type='SGD', lr=0.1))
    scaling = dict(base_batch_size=8, enable=True)
    made = build_runner(tmp_path, None, optim_wrapper=wrapper, auto_scale_lr=scaling, param_scheduler=[])
    made.train()
    assert made.optim_wrapper.param_groups[0]['lr'] == pytest.approx(lr)
    assert made.cfg.auto_scale_lr == scaling
