"""Early stopping counts on after an interruption, and says what it cannot do."""

from pathlib import Path

import pytest
from forked_tools import run_forked
from run_comparison import assert_same_end

CONFIG = Path(__file__).parent / 'epochs.py'
HOOKS = (
    "custom_hooks=[{'type':'EMAHook','momentum':0.1},"
    "{'type':'EarlyStoppingHook','monitor':'accuracy/top1','min_delta':200,'patience':2}]"
)
# The schedule of a longer run, so that two epochs are a part of it.
OPTIONS = [HOOKS, 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
OPTIONS += ['train_cfg.val_interval=1', 'param_scheduler.1.end=15']


def train(folder, *arguments, options=()):
    arguments = [CONFIG, '--work-dir', folder, *arguments]
    result = run_forked('train.py', *arguments, cwd=folder.parent, options=[*OPTIONS, *options])
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope='module')
def resumed(tmp_path_factory):
    """A run of two epochs that goes on: its folder, and what it printed then. Nothing is better by 200 points."""
    folder = tmp_path_factory.mktemp('parts') / 'run'
    train(folder, options=['train_cfg.max_epochs=2'])
    return folder, train(folder, '--resume')


def test_the_counter_is_restored(resumed):
    _, rest = resumed
    assert 'did not improve in the last 2 records' in rest
    assert 'Epoch(val) [3]' in rest
    assert 'Epoch(train) [4]' not in rest


@pytest.mark.slow
def test_an_interrupted_run_ends_as_the_whole_one(resumed, tmp_path):
    """With accumulated gradients and averaged weights."""
    assert 'Epoch(train) [4]' not in train(tmp_path / 'whole')
    assert_same_end(tmp_path / 'whole', resumed[0])


def test_what_was_trained_last_is_saved(tmp_path):
    options = ['custom_hooks.1.stopping_threshold=-1', 'default_hooks.checkpoint.interval=10']
    train(tmp_path / 'run', options=[*options, 'default_hooks.checkpoint.save_best=None'])
    assert [path.name for path in (tmp_path / 'run').glob('*.pth')] == ['epoch_1.pth']


@pytest.mark.slow
def test_a_run_that_it_has_ended_does_not_go_on(tmp_path):
    options = ['custom_hooks.1.stopping_threshold=-1']
    assert 'Stopping threshold reached' in train(tmp_path / 'run', options=options)
    output = train(tmp_path / 'run', '--resume', options=options)
    assert 'the run was stopped early by accuracy/top1: raise patience or stopping_threshold to continue' in output
    assert 'Epoch(train)' not in output
    assert 'Epoch(train) [2]' in train(tmp_path / 'run', '--resume')
