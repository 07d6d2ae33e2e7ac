"""Schedules follow the length of a run, and one that does not fit it is a warning before the first iteration."""

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


@pytest.mark.parametrize('epoch_length', [1, 100])
@pytest.mark.parametrize('length', [0.5, 1.4])
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
    """Train on two iterations an epoch; the learning rate of each, and the warnings of its log file."""
    hooks = dict(checkpoint=dict(type='vt.CheckpointHook'), logger=None, schedule=dict(type='vt.ScheduleHook'))
    hooks = {} if runner == 'Runner' else dict(default_hooks=hooks)
    options = dict(randomness=dict(seed=1)) | hooks | options
    made = build_runner(folder, dict(type='SGD', lr=0.1), epochs, runner, param_scheduler=schedulers, **options)
    recorder = Recorder()
    made.register_hook(recorder)
    made.train()
    log = ''.join(path.read_text() for path in (folder / made.timestamp).glob('*.log'))
    return recorder.values, [
        line.split(' - WARNING - ')[1]
        for line in log.splitlines()
        if ' ends ' in line or ' the learning rate of' in line
    ]


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
    hooks = dict(logger=None, schedule=dict(type='vt.ScheduleHook'), checkpoint=checkpoint)
    return dict(train_cfg=dict(by_epoch=False, max_iters=number), default_hooks=hooks, **batches_of(2))


@pytest.mark.parametrize('runner', ['Runner', 'VTRunner'])
def test_an_epoch_of_one_iteration_warms_up_in_one(runner, tmp_path):
    """In mmengine's own runner too."""
    values, _ = train(tmp_path / 'run', RECIPE, epochs=6, runner=runner, **batches_of(8))
    decay = [0.05 * (1 + math.cos(math.pi * step / 5)) for step in range(5)]
    assert values == pytest.approx([0.001, *decay])


@pytest.mark.parametrize('epochs', [1, 2, 7])
def test_epochs_of_two_iterations(epochs, tmp_path):
    values, _ = train(tmp_path / 'run', RECIPE, epochs)
    decay = [0.05 * (1 + math.cos(math.pi * step / (2 * epochs - 2))) for step in range(2 * epochs - 2)]
    assert values == pytest.approx([0.001, 0.1, *decay])


@pytest.mark.parametrize('number', [1, 2, 3, 4])
def test_a_run_as_short_as_can_be(number, tmp_path):
    schedulers = [
        by_iteration('vt.WarmUpLR', start_factor=0.01, length=2),
        by_iteration('vt.CosineAnnealingLR', begin=2),
    ]
    values, warnings = train(tmp_path / 'run', schedulers, **iterations(number))
    assert len(values) == number
    assert values[0] == pytest.approx(0.001)
    assert number == 1 or max(values) == pytest.approx(0.1)
    assert bool(warnings) == (number < 4)
    if number == 3:
        assert warnings[0].startswith('CosineAnnealingLR begins at the last step of the run, so it keeps')


def by_iteration(kind, **options):
    return dict(type=kind, by_epoch=False, **options)


@pytest.mark.parametrize(
    ('schedulers', 'message'),
    [
        (cosine(0, 5), 'CosineAnnealingLR ends after 5 of 7 epochs'),
        ([linear(1), cosine(1, 5)], 'CosineAnnealingLR ends after 5 of 7 epochs'),
        ([linear(1), cosine(1, 10)], 'CosineAnnealingLR ends after 10 epochs, but the run after 7'),
        (dict(type='CosineAnnealingLR', T_max=5), 'CosineAnnealingLR ends after 5 of 7 epochs'),  # and rises again
        (dict(type='CosineAnnealingLR', T_max=9), 'CosineAnnealingLR ends after 9 epochs, but the run after 7'),
        (by_iteration('PolyLR', end=12), 'PolyLR ends after 6 of 7 epochs'),
        (by_iteration('PolyLR', end=15), 'PolyLR ends after 7.5 epochs, but the run after 7'),
        (by_iteration('LinearLR', start_factor=0.1, end=15), 'LinearLR ends after 7.5 epochs, but the run after 7'),
        (by_iteration('LinearLR', start_factor=1.0, end_factor=0.1, end=8), 'LinearLR ends after 4 of 7 epochs'),
        (dict(type='LinearLR', start_factor=0.1, end=1), 'LinearLR has a single step'),
        (dict(type='ConstantLR', factor=0.1, end=1), 'ConstantLR has a single step'),
        (dict(type='MultiStepLR', milestones=[3, 8]), 'MultiStepLR ends after 9 epochs, but the run after 7'),
        (dict(type='ExponentialLR', gamma=0.9, end=5), 'ExponentialLR ends after 5 of 7 epochs'),
        (dict(type='OneCycleLR', eta_max=0.1, total_steps=9), 'OneCycleLR ends after 9 epochs, but the run after 7'),
        (
            dict(type='CosineRestartLR', periods=[3, 5], restart_weights=[1, 0.5], eta_min=0.0),
            'CosineRestartLR ends after 8 epochs, but the run after 7',
        ),
        (by_iteration('vt.WarmUpLR', length=15), 'WarmUpLR ends after 7.5 epochs, but the run after 7'),
    ],
)
def test_what_does_not_fit_is_a_warning_with_the_last_rate(schedulers, message, tmp_path):
    schedulers = schedulers if isinstance(schedulers, list) else [schedulers]
    values, (warning,) = train(tmp_path / 'run', schedulers, epochs=7)
    assert warning.startswith(message)
    assert warning.endswith(f'the learning rate of the last iteration is {values[-1]:.3g}')


@pytest.mark.parametrize(
    'schedulers',
    [
        [],
        RECIPE,
        [linear(1), cosine(1, 7)],
        [linear(3)],
        [dict(type='ConstantLR', factor=0.1, end=2)],
        [dict(type='MultiStepLR', milestones=[3, 6])],
        [linear(1), dict(type='MultiStepLR', milestones=[3], end=5)],
        [dict(type='StepLR', step_size=3)],
        [dict(type='ExponentialLR', gamma=0.9, end=10**6)],
        [dict(type='PolyLR')],
        [dict(type='CosineAnnealingMomentum', T_max=3)],
    ],
    ids=lambda schedulers: '+'.join(scheduler['type'] for scheduler in schedulers) or 'none',
)
def test_what_fits_is_none(schedulers, tmp_path):
    momentum = dict(optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9)))
    assert train(tmp_path / 'run', schedulers, epochs=7, **momentum)[1] == []


def test_epochs_in_a_loop_over_iterations_are_a_warning(tmp_path):
    values, (warning,) = train(tmp_path / 'run', [dict(type='MultiStepLR', milestones=[2])], **iterations(4))
    assert warning.startswith('MultiStepLR counts epochs but the run counts iterations')
    assert set(values) == {0.1}


def test_the_last_rate_is_the_base_rate_after_a_checkpoint_too(tmp_path):
    """Of a run with rates of single parameters, resumed into more epochs than its schedule was saved with."""
    wrapper = dict(
        optimizer=dict(type='SGD', lr=0.1),
        paramwise_cfg=dict(custom_keys=dict(norm=dict(lr_mult=0.5))),
    )
    options = dict(optim_wrapper=wrapper)
    train(tmp_path / 'run', RECIPE, epochs=4, **options)
    resumed = dict(load_from=tmp_path / 'run/epoch_4.pth', resume=True)
    values, (warning,) = train(tmp_path / 'longer', RECIPE, epochs=6, **options, **resumed)
    assert len(values) == 4
    assert warning.startswith('CosineAnnealingLR ends after 4 of 6 epochs')
    assert warning.endswith(f' is {values[-1]:.3g}')


@pytest.mark.parametrize(('counts', 'lr'), [(1, 0.05), (2, 0.1), (6, 0.3)])
def test_a_scaled_rate_counts_accumulated_batches(counts, lr, tmp_path):
    """Batches of 4; the rate, 0.1, is for 8."""
    wrapper = dict(accumulative_counts=counts, optimizer=dict(type='SGD', lr=0.1))
    scaling = dict(base_batch_size=8, enable=True)
    hooks = dict(logger=None, schedule=dict(type='vt.ScheduleHook'), checkpoint=dict(type='vt.CheckpointHook'))
    made = build_runner(
        tmp_path, None, 1, optim_wrapper=wrapper, auto_scale_lr=scaling, param_scheduler=[], default_hooks=hooks
    )
    made.train()
    assert made.optim_wrapper.param_groups[0]['lr'] == pytest.approx(lr)
    assert made.cfg.auto_scale_lr == scaling
