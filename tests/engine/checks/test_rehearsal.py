"""The batches that a rehearsal tries, and parameters that the loss does not reach."""

from types import SimpleNamespace

import pytest
import torch
from checkpoints.small_models import build_runner
from mmengine.dataset import DefaultSampler, InfiniteSampler, pseudo_collate
from mmengine.hooks import Hook
from torch.utils.data import DataLoader

import vt
from vt.engine.checks.rehearsal import RehearsalHook, draw_once, rehearsed_batches, save_once
from vt.errors import UserError

SGD = dict(type='SGD', lr=0.1)


def loader(number, batch_size, sampler=DefaultSampler, **options):
    data = vt.Digits('train', indices=number, pipeline=[dict(type='PackInputs')])
    sampler = sampler(data, shuffle=False, seed=0)
    return DataLoader(data, batch_size, sampler=sampler, collate_fn=pseudo_collate, **options)


@pytest.mark.parametrize(
    ('loader', 'sizes'),
    [
        (loader(10, 4), [4, 2]),
        (loader(8, 4), [4]),
        (loader(3, 4), [3]),
        (loader(10, 4, drop_last=True), [4]),
        (loader(10, 4, InfiniteSampler), [4]),
        (loader(3, 1), [1, 1]),
        (loader(1, 1), [1]),
        (loader(19, 10), [10, 9]),  # more than the samples that are loaded
    ],
)
def test_the_last_batch_of_an_epoch_is_tried_too(loader, sizes):
    found = [batch for _, batch in rehearsed_batches(loader)]
    assert [len(batch['inputs']) for batch in found] == sizes
    if sizes == [1, 1]:
        assert not torch.equal(found[0]['inputs'][0], found[1]['inputs'][0])
    assert [len(batch['inputs']) for _, batch in rehearsed_batches(loader, 2)] == [2]


def build_for_training(runner):
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.param_schedulers = runner.build_param_scheduler(runner.param_schedulers)


class Unsaved(Hook):
    """A hook with a state that no checkpoint can hold."""

    def before_save_checkpoint(self, runner, checkpoint):
        checkpoint['own'] = 1 / 0


def test_a_checkpoint_is_written_read_and_removed(tmp_path):
    runner = build_runner(tmp_path, SGD)
    build_for_training(runner)
    files = {*tmp_path.rglob('*')}
    save_once(runner)
    runner.register_hook(Unsaved())
    with pytest.raises(UserError, match=r'^while saving a checkpoint: ZeroDivisionError: division by zero'):
        save_once(runner)
    assert {*tmp_path.rglob('*')} == files


@pytest.mark.parametrize(
    ('hook', 'expected'),
    [
        (None, []),
        (dict(type='vt.CheckpointHook'), [{'optimizer', 'param_schedulers'}]),
        (dict(type='vt.CheckpointHook', save_optimizer=False), [{'param_schedulers'}]),
        (dict(type='vt.CheckpointHook', save_param_scheduler=False), [{'optimizer'}]),
    ],
)
def test_what_the_hook_of_checkpoints_leaves_out_is_not_written(hook, expected, tmp_path):
    runner, found = build_runner(tmp_path, SGD, default_hooks=dict(checkpoint=hook)), []
    build_for_training(runner)
    seen = Hook()
    seen.before_save_checkpoint = lambda _, checkpoint: found.append({'optimizer', 'param_schedulers'} & {*checkpoint})
    runner.register_hook(seen)
    save_once(runner)
    assert found == expected


class Figures(Hook):
    """A visualization hook that remembers what it draws."""

    enable, out_dir, interval = True, 'figures', 50

    def __init__(self):
        self.draw_args = {}

    def after_val_iter(self, *given):
        self.draw_args['out_file'] = self.out_dir / '0.png'
        self.drawn.append((self.out_dir.is_dir(), self.interval, *given[2:]))


def test_one_sample_is_drawn_elsewhere():
    Figures.drawn = []
    hook = Figures()
    draw_once(SimpleNamespace(hooks=[Hook(), hook]), 'after_val_iter', dict(inputs=[1, 2], data_samples=[3, 4]), [5, 6])
    assert Figures.drawn == [(True, 1, dict(inputs=[1], data_samples=[3, 4]), [5])]
    assert (hook.out_dir, hook.interval, hook.draw_args) == ('figures', 50, {})


def test_parameters_without_gradient_are_named_and_weights_stay(tmp_path):
    runner = build_runner(tmp_path, SGD)
    runner.model.spare = torch.nn.Linear(2, 2)
    runner.model.frozen = torch.nn.Linear(2, 2).requires_grad_(False)
    before = {name: value.clone() for name, value in runner.model.state_dict().items()}
    build_for_training(runner)
    RehearsalHook().before_train(runner)
    (log,) = tmp_path.rglob('*.log')
    line = 'the loss does not depend on 2 parameters: spare.weight, spare.bias: they are not trained'
    assert log.read_text().count(line) == 1
    assert all(torch.equal(value, before[name]) for name, value in runner.model.state_dict().items())
