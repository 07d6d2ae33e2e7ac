"""The batches that a dry run tries, and what it says of inputs, rules and parameters that the loss does not reach."""

import pytest
import torch
from bad_input.small_runs import DIGITS
from checkpoints.small_models import build_runner
from mmengine.dataset import DefaultSampler, InfiniteSampler, pseudo_collate
from mmengine.hooks import EarlyStoppingHook, Hook
from tool_runner import call
from torch.utils.data import DataLoader

import vt
from vt.engine.determinism import NumberedSampler
from vt.engine.hooks.checkpoint import CheckpointHook
from vt.engine.hooks.dry_run import DryRunHook, check_scores, describe_inputs, dry_run_batches, save_once
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
    found = [batch for _, batch in dry_run_batches(loader)]
    assert [len(batch['inputs']) for batch in found] == sizes
    if sizes == [1, 1]:
        assert not torch.equal(found[0]['inputs'][0], found[1]['inputs'][0])
    assert [len(batch['inputs']) for _, batch in dry_run_batches(loader, 2)] == [2]


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
    DryRunHook().before_train(runner)
    (log,) = tmp_path.rglob('*.log')
    line = 'the loss does not depend on 2 parameters: spare.weight, spare.bias: they are not trained'
    assert log.read_text().count(line) == 1
    assert all(torch.equal(value, before[name]) for name, value in runner.model.state_dict().items())


MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
TWICE, NOT_AT_ALL = 'they seem to be normalised twice', 'they seem not to be normalised'


def normalise(pixels, mean=MEAN, std=STD):
    shape = 1, -1, *(1,) * (pixels.ndim - 2)
    return (pixels - torch.tensor(mean).view(shape)) / torch.tensor(std).view(shape)


@pytest.mark.parametrize('shape', [(4, 3, 16, 16), (2, 3, 4, 16, 16)])
@pytest.mark.parametrize(
    ('seen', 'words'),
    [
        (lambda pixels: normalise(pixels), None),
        (lambda pixels: normalise(pixels * 0.05), None),  # dark
        (lambda pixels: normalise(100.0 * (pixels > 254.5)), None),  # some bright points
        (lambda pixels: normalise(pixels, std=(1.0,) * 3), None),  # as weights of Caffe expect
        (lambda pixels: normalise(pixels * 0.2, std=(1.0,) * 3), None),
        (lambda pixels: pixels / 255, None),
        (lambda pixels: normalise(normalise(pixels)), TWICE),
        (lambda pixels: normalise(255.0 * (pixels > 99)).where(pixels > 99, normalise(normalise(pixels))), None),
        (lambda pixels: normalise(pixels / 255), TWICE),
        (lambda pixels: normalise(normalise(pixels)).where(pixels > 99, torch.zeros(())), TWICE),  # padded
        (lambda pixels: pixels, NOT_AT_ALL),
        (lambda pixels: 40 * pixels, NOT_AT_ALL),  # of 16 bits
        (lambda pixels: normalise(pixels, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), NOT_AT_ALL),
        (lambda pixels: pixels * 0, None),
    ],
)
def test_inputs_that_are_normalised_twice_or_not_at_all(seen, words, shape):
    pixels = 255 * torch.rand(shape, generator=torch.Generator().manual_seed(0))
    found = describe_inputs(seen(pixels))
    assert found is words is None or found.endswith(words)


def test_what_the_network_gets_is_said_in_training_and_in_validation(tmp_path):
    steps = [dict(type='Normalize', mean=MEAN, std=STD, to_rgb=False), dict(type='PackInputs')]
    (tmp_path / 'config.py').write_text(f"""{DIGITS}
pipeline = {steps}
train_dataloader['dataset']['pipeline'] = val_dataloader['dataset']['pipeline'] = pipeline
""")
    result = call('train.py', 'config.py', cwd=tmp_path)
    lines = [line for line in result.stdout.splitlines() if 'the network gets inputs of mean -' in line]
    assert [TWICE in line for line in lines] == [True, True]
    assert ['While training' in line for line in lines] == [True, False]


def test_a_rule_that_contradicts_its_score_is_a_warning():
    """A score without a rule would end the first validation."""
    scores = {'accuracy/top1': 1.0, 'loss': 1.0, 'quality': 1.0}
    best = [CheckpointHook(save_best=[*scores], rule='greater'), EarlyStoppingHook('loss')]
    (warning,) = check_scores(scores, best)
    assert (
        warning
        == "default_hooks.checkpoint.save_best=loss has rule='greater', although its name says that less is better"
    )
    auto, known = CheckpointHook(save_best='auto'), CheckpointHook(save_best='auto', rule='less')
    assert [*check_scores(scores, [auto])] == [*check_scores(dict(quality=1.0), [known])] == []
    with pytest.raises(UserError, match=r"save_best=quality: the name does not say .*: set rule='greater' or 'less'"):
        [*check_scores(dict(quality=1.0), [auto])]
