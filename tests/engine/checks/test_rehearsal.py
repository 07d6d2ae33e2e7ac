"""The batches that a rehearsal tries, and parameters that the loss does not reach."""

import pytest
import torch
from checkpoints.small_models import build_runner
from mmengine.dataset import DefaultSampler, InfiniteSampler, pseudo_collate
from mmengine.hooks import Hook
from torch.utils.data import DataLoader

import vt
from vt.engine.checks.rehearsal import RehearsalHook, rehearsed_batches, save_once
from vt.engine.interruption.seeds import NumberedSampler
from vt.errors import UserError

SGD = dict(type='SGD', lr=0.1)


def loader(number, batch_size, sampler=DefaultSampler, **options):
    data = vt.Digits('train', indices=number, pipeline=[dict(type='PackInputs')])
    sampler = sampler(data, shuffle=False, seed=0)
    return DataLoader(data, batch_size, sampler=sampler, collate_fn=pseudo_collate, **options)


def numbered(data, **options):  # as in a run
    return NumberedSampler(dict(type='InfiniteSampler'), 0, dataset=data, **options)


@pytest.mark.parametrize(
    ('loader', 'sizes'),
    [
        (loader(10, 4), [4, 2]),
        (loader(8, 4), [4]),
        (loader(3, 4), [3]),
        (loader(10, 4, drop_last=True), [4]),
        (loader(10, 4, InfiniteSampler), [4]),
        (loader(10, 4, numbered), [4]),
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


BOTH = {'optimizer', 'param_schedulers'}


@pytest.mark.parametrize(
    ('hook', 'expected'),
    [
        (None, []),
        (dict(type='vt.CheckpointHook'), [BOTH]),
        (dict(type='vt.CheckpointHook', save_optimizer=False), [{'param_schedulers'}]),
        (dict(type='vt.CheckpointHook', save_param_scheduler=False), [{'optimizer'}]),
    ],
)
def test_a_checkpoint_is_written_as_its_hook_does_read_and_removed(hook, expected, tmp_path):
    runner, found = build_runner(tmp_path, SGD, default_hooks=dict(checkpoint=hook)), []
    build_for_training(runner)
    files, seen = {*tmp_path.rglob('*')}, Hook()
    seen.before_save_checkpoint = lambda _, checkpoint: found.append(BOTH & {*checkpoint})
    runner.register_hook(seen)
    save_once(runner)
    assert found == expected
    seen.before_save_checkpoint = lambda _, checkpoint: 1 / 0  # a state that no checkpoint can hold
    if hook:
        with pytest.raises(UserError, match=r'^while saving a checkpoint: ZeroDivisionError: division by zero'):
            save_once(runner)
    assert {*tmp_path.rglob('*')} == files


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
