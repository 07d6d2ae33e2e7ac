"""The largest batch: sizes are doubled until one does not fit."""

import re
from collections import Counter
from itertools import count
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from checkpoints.small_models import build_runner
from forked_tools import run_forked
from mmengine.dataset import DefaultSampler, InfiniteSampler
from tool_runner import ROOT
from torch.utils.data import DataLoader

from vt.engine.run import batch_size
from vt.errors import UserError

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'


@pytest.mark.parametrize(
    ('first', 'images', 'limit', 'found', 'steps'),
    [(32, 1000, 300, 256, 3), (32, 100, 300, 100, 1), (1, 9, 1, 1, 2), (32, 100, 31, 0, 1)],
)
def test_the_largest_of_doubled_sizes_that_fits_is_found(first, images, limit, found, steps, monkeypatch):
    for name in ('empty_cache', 'reset_peak_memory_stats', 'synchronize'):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(batch_size, 'time', SimpleNamespace(perf_counter=count().__next__))  # a step takes a second
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'max_memory_allocated', lambda: 2**30)
    monkeypatch.setattr(batch_size, 'dry_run_batches', lambda loader, size: iter([('a batch', size)]))
    runner, hook = MagicMock(), batch_size.BatchSizeHook()
    runner.train_dataloader = SimpleNamespace(batch_size=first, dataset=range(images))
    runner.cfg.optim_wrapper = dict(accumulative_counts=steps)

    def train_step(size, wrapper):
        if size > limit:
            raise torch.OutOfMemoryError

    runner.model.train_step.side_effect = train_step
    if found:
        hook.before_train(runner)
        assert (hook.largest, runner.train_loop.stop_training) == (found, True)
        assert [row['images/s'] for row in hook.trials if row['memory (GiB)'] == '1.0'][-1] == str(found)
        assert (hook.trials[-1]['images/s'] == 'out of memory') == (found < images)
        tried = Counter(call.args[0] for call in runner.model.train_step.call_args_list)
        assert tried == {size: max(2, steps) if size <= limit else 1 for size in tried}
        assert runner.optim_wrapper.zero_grad.call_count == len(hook.trials) == len(tried)
    else:
        with pytest.raises(UserError, match='batches of 32 images do not fit'):
            hook.before_train(runner)


@pytest.mark.parametrize(
    ('number', 'size', 'options', 'words'),
    [
        (51, 32, {}, 'each epoch leaves out 19 of 51 training samples: train_dataloader.batch_size=32, drop_'),
        (51, 32, {}, 'drop_last=True; batches of 25 leave out 1, drop_last=False none'),
        (35, 32, {}, None),
        (36, 32, {}, 'leaves out 4 of 36'),
        (51, 32, dict(drop_last=False), None),
        (51, 32, dict(kind=InfiniteSampler), None),
        (20, 32, dict(kind=InfiniteSampler), None),
        (20, 32, {}, 'an epoch has no batch: train_dataloader.batch_size=32, but 20 training samples; lower it to'),
    ],
)
def test_samples_that_the_batches_of_an_epoch_leave_out(number, size, options, words):
    options = dict(kind=DefaultSampler, drop_last=True) | options
    sampler = options.pop('kind')([None] * number, shuffle=False)
    loader = DataLoader(range(number), size, sampler=sampler, **options)
    try:
        found = batch_size.find_left_out_samples(loader)
    except UserError as error:
        found = str(error)
    assert found is None if words is None else words in found


def test_it_needs_a_gpu_and_leaves_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    with pytest.raises(UserError, match='--find-batch-size needs a GPU'):
        batch_size.BatchSizeHook().before_train(None)
    monkeypatch.setattr(batch_size, 'torch', SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True)))
    monkeypatch.setattr(batch_size.BatchSizeHook, '_fits', lambda *_: True)
    runner, hook = build_runner(tmp_path, dict(type='SGD', lr=0.1)), batch_size.BatchSizeHook()
    runner.register_hook(hook)
    runner.train()
    assert (hook.largest, [*tmp_path.glob('*.pth')]) == (8, [])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_the_memory_of_a_gpu_is_found(tmp_path):
    options = ['train_dataloader.dataset.pipeline.0.scale=1024']
    result = run_forked('train.py', CONFIG, '--find-batch-size', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr[-3000:]
    (found,) = re.findall(r'^largest batch: .*batch_size=(\d+) ', result.stdout, re.M)
    assert int(found) >= 32
    assert 'out of memory' in result.stdout
    assert not list(tmp_path.iterdir())
