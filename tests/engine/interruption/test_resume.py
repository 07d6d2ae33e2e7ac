"""Which checkpoint a run goes on from, and what it does first."""

import os

import pytest
import torch
from engine.interruption.small_runs import KINDS, Score, checkpoints_in, loader, log_of, train, train_few, train_small
from run_comparison import assert_same_end
from tool_runner import succeed

from vt.checkpoints import reading
from vt.errors import UserError

BEST = dict(checkpoint=dict(save_best='mean', rule='greater'))  # written after the validation
RESTARTED = dict(TORCHELASTIC_MAX_RESTARTS='1', TORCHELASTIC_RESTART_COUNT='1')


@pytest.mark.parametrize(('arguments', 'env'), [(['--resume', 'run'], {}), ([], RESTARTED)])
def test_a_damaged_checkpoint_is_named_and_the_newest_whole_one_taken(arguments, env, used, finished):
    """Also by a restart, which goes on by itself after a failure: that leaves the job in the lock."""
    newest = used / 'run/epoch_3.pth'
    newest.write_bytes(newest.read_bytes()[:-1000])
    (used / 'run/epoch_2.pth').write_bytes(b'')
    (used / 'run/run.lock').write_text('process 7 on node since 2026-01-01 00:00:00, job of this machine\n')
    result = succeed(train_few(used, *arguments, env=os.environ | env))
    (line,) = (line for line in result.stdout.splitlines() if 'run/epoch_3.pth is damaged: it is truncated' in line)
    assert 'WARNING' in line
    assert 'Resuming from run/epoch_1.pth instead' in line
    assert 'run/epoch_2.pth is damaged' in result.stdout
    assert 'Epoch(train) [1]' not in result.stdout
    assert 'Epoch(train) [2]' in result.stdout.replace('  ', ' ')
    assert_same_end(used / 'run', finished / 'run')


def test_nothing_to_resume_is_said(tmp_path):
    result = succeed(train_few(tmp_path, '--resume', options=['train_cfg.max_epochs=1']))
    assert 'There is nothing to resume in run: training starts from the beginning' in result.stdout
    assert (tmp_path / 'run/epoch_1.pth').exists()


def test_a_validation_that_was_due_comes_first(tmp_path, monkeypatch):
    """A checkpoint without the best one is written before the validation."""
    train_small(tmp_path, 2)
    scores, compute = [], Score.compute_metrics
    monkeypatch.setattr(Score, 'compute_metrics', lambda self, results: scores.append(1) or compute(self, results))
    runner = train_small(tmp_path, 2, resume=True)
    assert (scores, runner.iter) == ([1], 4)


def test_a_validation_is_not_repeated_where_epochs_have_another_length(tmp_path, monkeypatch):
    train_small(tmp_path, 1, **BEST)
    scores = []
    monkeypatch.setattr(Score, 'compute_metrics', lambda *_: scores.append(1) or dict(mean=0.0))
    train_small(tmp_path, 1, train_dataloader=loader(batch_size=2), resume=True, **BEST)
    assert (scores, 'Epochs have 4 iterations now, and had 2 in the checkpoint' in log_of(tmp_path)) == ([], True)


def test_what_cannot_go_on_is_refused(tmp_path):
    train_small(tmp_path / 'run', 3, **BEST)
    with pytest.raises(
        UserError, match=r'the checkpoint was trained for 3 epochs, more than train_cfg\.max_epochs=1: raise'
    ):
        train_small(tmp_path / 'run', 1, resume=True)
    best = tmp_path / 'run' / checkpoints_in(tmp_path / 'run')[0]
    with pytest.raises(UserError, match=f'{best.name} contains no training state .*: start from its weights'):
        train_small(tmp_path / 'other', load_from=best, resume=True)


def test_what_a_checkpoint_says_about_the_keys_of_a_log_has_no_effect(tmp_path):
    """In training mmengine would fail at a value that is not its own."""
    train_small(tmp_path, 1)
    checkpoint = torch.load(tmp_path / 'epoch_1.pth', weights_only=True)
    checkpoint['message_hub']['resumed_keys'] = dict(last_validation=False, epoch='no', loss=0)
    torch.save(checkpoint, tmp_path / 'epoch_1.pth')
    assert train_small(tmp_path, 2, resume=True).iter == 4


def test_batches_of_a_batch_sampler_go_on_too(tmp_path):
    """The same batches as those of a sampler, in the same order."""
    sampled = loader() | dict(batch_sampler=dict(type='torch.utils.data.BatchSampler', drop_last=True))
    train_small(tmp_path / 'whole', **BEST)
    train_small(tmp_path / 'parts', 2, train_dataloader=sampled, **BEST)
    train_small(tmp_path / 'parts', train_dataloader=sampled, resume=True, **BEST)
    assert_same_end(tmp_path / 'whole', tmp_path / 'parts')


@pytest.mark.parametrize('kind', KINDS)
def test_a_checkpoint_is_read_once_to_continue_from_it(kind, tmp_path, monkeypatch):
    train(tmp_path, kind)
    load, read = reading.load_file, []
    monkeypatch.setattr(reading, 'load_file', lambda path, *args: [read.append(path), load(path, *args)][1])
    train(tmp_path, kind)
    assert [path.parent for path in read] == [tmp_path]
