"""Runs of this room: in this process, of a model of a few weights; and of ``epochs.py`` by ``tools/train.py``."""

import re
from pathlib import Path

from checkpoints.small_models import Line, Points, build_runner
from forked_tools import _context as forked
from forked_tools import run_forked, steps_of
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DATASETS, METRICS, MODELS
from mmengine.visualization import Visualizer
from numpy import random
from torch.nn.functional import dropout

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.max_epochs=3', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
FEW += ['train_cfg.val_interval=1', 'default_hooks.checkpoint.max_keep_ckpts=-1']


def train_few(folder, *arguments, options=(), env=None):
    """Three short epochs of :file:`epochs.py` in ``folder/run``, which keep all checkpoints."""
    arguments = [CONFIG, '--skip-data-check', '--work-dir', 'run', *arguments]
    return run_forked('train.py', *arguments, cwd=folder, options=[*FEW, *options], env=env)


@MODELS.register_module('NoisyLine', force=True)
class NoisyLine(Line):
    """One that draws random numbers in training."""

    def forward(self, inputs, mode='tensor'):
        return super().forward([dropout(points, 0.3, self.training) for points in inputs], mode)


@DATASETS.register_module('NoisyPoints', force=True)
class NoisyPoints(Points):
    """Points that are augmented."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return dict(inputs=super().__getitem__(index)['inputs'] + float(random.normal()))


@METRICS.register_module('SmallScore', force=True)
class Score(BaseMetric):
    """A score that never gets better, and one that depends on the weights."""

    def process(self, data_batch, data_samples):
        self.results += [sample.mean().item() for sample in data_samples]

    def compute_metrics(self, results):
        return dict(score=1.0, mean=sum(results) / len(results))


class Recorder(Hook):
    """Learning rate and momentum of every iteration, of the last group of parameters."""

    def __init__(self):
        self.values = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        group = runner.optim_wrapper.param_groups[-1]
        self.values.append((group['lr'], group['momentum']))


def loader(data='SmallPoints', batch_size=4, sampler='DefaultSampler', **options):
    sampler = dict(type=sampler, shuffle=True)
    return dict(dataset=dict(type=data), batch_size=batch_size, num_workers=0, sampler=sampler, **options)


def small_runner(folder, epochs=4, checkpoint=None, hooks=(), optimizer=None, **options):
    """A runner of epochs of two iterations that validates after each and resumes exactly."""
    for kind in (MessageHub, MMLogger, Visualizer):
        kind._instance_dict.clear()  # of earlier runs in this second, which have the same name
    defaults = dict(
        param_scheduler=[],
        randomness=dict(seed=1),
        val_cfg=dict(),
        val_dataloader=loader(),
        val_evaluator=dict(type='SmallScore'),
        experiment_name='small',
        default_hooks=dict(
            checkpoint=dict(type='vt.CheckpointHook', interval=1) | (checkpoint or {}),
            resume=dict(type='vt.ResumeHook'),
            seed=dict(type='vt.SeedHook'),
            preemption=dict(type='vt.PreemptionHook'),
            weights_match=dict(type='vt.WeightsMatchHook'),
            schedule=dict(type='vt.ScheduleHook'),
            logger=None,
        ),
        train_cfg=dict(type='vt.EpochBasedTrainLoop', max_epochs=epochs),
    )
    optimizer = optimizer or dict(type='SGD', lr=0.01, momentum=0.9)
    runner = build_runner(folder, optimizer, **defaults | options)
    for hook in hooks:
        runner.register_hook(hook)
    return runner


def train_small(folder, *arguments, **options):
    """Train it, and return the runner."""
    runner = small_runner(folder, *arguments, **options)
    runner.train()
    return runner


EPOCHS = dict(
    epochs=3,
    train_dataloader=loader('NoisyPoints'),
    param_scheduler=[dict(type='LinearLR', end=7, by_epoch=False), dict(type='CosineAnnealingLR', T_max=4)],
    checkpoint=dict(max_keep_ckpts=2, save_best='mean', rule='greater'),
)
ITERATIONS = dict(
    train_dataloader=loader('NoisyPoints', sampler='InfiniteSampler'),
    param_scheduler=[dict(type='PolyLR', by_epoch=False, power=0.9, end=15)],
    checkpoint=dict(by_epoch=False, interval=3, max_keep_ckpts=1, save_best='mean', rule='greater'),
    train_cfg=dict(type='IterBasedTrainLoop', max_iters=15, val_interval=6),
)
KINDS = dict(epochs=EPOCHS, iterations=ITERATIONS)


def train(folder, kind, *hooks, **options):
    """15 iterations with dropout, augmentation, a moving average, clipped and accumulated gradients; or go on."""
    wrapper = dict(accumulative_counts=2, clip_grad=dict(max_norm=1.0))
    averages = [dict(type='EMAHook', momentum=0.1, update_buffers=True)]
    more = dict(model=dict(type='NoisyLine'), wrapper=wrapper, optimizer=dict(type='AdamW', lr=0.1))
    return train_small(folder, hooks=hooks, custom_hooks=averages, resume=True, **more | KINDS[kind] | options)


def train_until_killed(folder, kind, step):
    """In a process of its own that is killed at the step of its files with a number; its exit code."""
    process = forked.Process(target=steps_of, args=(train, folder, kind), kwargs=dict(killed_at=step, names_only=True))
    process.start()
    process.join()
    return process.exitcode


def log_of(folder):
    """What all runs of a folder have logged."""
    return ''.join(path.read_text() for path in sorted(folder.glob('*/*.log')))


def differing(log):
    """The rows of the table in a log, by setting: what the checkpoint has, what is asked for, what is used."""
    rows = [re.split(r'\s*\|\s*', line.strip('| \n')) for line in log.splitlines() if line.startswith('| ')]
    return {setting: tuple(cells) for setting, *cells in rows[1:]}


def checkpoints_in(folder):
    return sorted(path.name for path in folder.glob('*.pth'))
