"""Which checkpoint a run goes on from, and what it does first."""

import json
import os
import shutil
from pathlib import Path

import pytest
from forked_tools import run_forked
from run_comparison import assert_same_end
from tool_runner import assert_one_line

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.max_epochs=4', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']


def train(folder, *arguments, options=(), env=None):
    arguments = [CONFIG, '--work-dir', 'run', *arguments]
    return run_forked('train.py', *arguments, cwd=folder, options=[*FEW, *options], env=env)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """A folder with the work directory of a finished run, which keeps all checkpoints."""
    folder = tmp_path_factory.mktemp('finished')
    result = train(folder, options=['default_hooks.checkpoint.max_keep_ckpts=-1'])
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of it, whose checkpoint of the last epoch is truncated."""
    shutil.copytree(finished / 'run', tmp_path / 'run')
    last = tmp_path / 'run/epoch_4.pth'
    (tmp_path / 'run/last_checkpoint').write_text(str(last))
    last.write_bytes(last.read_bytes()[:-1000])
    return tmp_path


@pytest.mark.parametrize('asked', [['--resume'], ['--resume', 'run']])
def test_a_damaged_checkpoint_is_named_and_the_newest_whole_one_taken(asked, copied, finished):
    (copied / 'run/epoch_3.pth').write_bytes(b'')
    result = train(copied, *asked, options=['default_hooks.checkpoint.max_keep_ckpts=-1'])
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stdout.splitlines() if 'run/epoch_4.pth is damaged: it is truncated' in line)
    assert 'WARNING' in line
    assert 'Resuming from run/epoch_2.pth instead' in line
    assert 'run/epoch_3.pth is damaged' in result.stdout
    assert 'Epoch(train) [2]' not in result.stdout
    assert_same_end(copied / 'run', finished / 'run')


def test_a_run_that_is_longer_than_the_config_is_named(copied):
    result = train(copied, '--resume', options=['train_cfg.max_epochs=1'])
    assert_one_line(result, 'the checkpoint has 3 epochs, more than train_cfg.max_epochs=1: raise it to train on')


def test_where_all_are_damaged_the_run_does_not_begin_anew(copied):
    for path in (copied / 'run').glob('*.pth'):
        path.write_bytes(b'no checkpoint')
    before = sorted((copied / 'run').glob('*.pth'))
    assert_one_line(train(copied, '--resume'), 'run has no complete checkpoint: choose another --work-dir')
    assert sorted((copied / 'run').glob('*.pth')) == before


def test_nothing_to_resume_is_said(tmp_path):
    result = train(tmp_path, '--resume', options=['train_cfg.max_epochs=1'])
    assert result.returncode == 0, result.stderr
    assert 'There is nothing to resume in run: training starts from the beginning' in result.stdout
    assert (tmp_path / 'run/epoch_1.pth').exists()


def test_a_validation_that_was_due_comes_first(tmp_path):
    options = ['train_cfg.max_epochs=2', 'default_hooks.checkpoint.save_best=None']
    assert train(tmp_path, options=options).returncode == 0
    metrics = json.loads((tmp_path / 'run/training.json').read_text())['metrics']
    (tmp_path / 'run/training.json').unlink()
    result = train(tmp_path, '--resume', options=options)  # from a file that was written before the validation
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train)' not in result.stdout
    assert json.loads((tmp_path / 'run/training.json').read_text())['metrics'] == metrics


def test_a_validation_is_not_repeated_where_epochs_have_another_length(copied):
    for epoch in (3, 4):
        (copied / f'run/epoch_{epoch}.pth').unlink()
    result = train(copied, '--resume', options=['train_cfg.max_epochs=2', 'train_dataloader.batch_size=4'])
    assert 'Epochs have 10 iterations now, and had 5 in the checkpoint' in result.stdout
    assert 'Epoch(val)' not in result.stdout


def test_a_restart_goes_on_by_itself(copied, finished):
    """After a failure, which leaves the job in the lock; a finished run is not continued."""
    (copied / 'run/run.lock').write_text('process 7 on node since 2026-01-01 00:00:00, job of this machine\n')
    env = dict(os.environ, TORCHELASTIC_MAX_RESTARTS='1', TORCHELASTIC_RESTART_COUNT='1')
    result = train(copied, env=env, options=['default_hooks.checkpoint.max_keep_ckpts=-1'])
    assert result.returncode == 0, result.stderr
    assert 'Epoch(train) [3]' not in result.stdout
    assert 'Epoch(train) [4]' in result.stdout
    assert_same_end(copied / 'run', finished / 'run')


def test_a_checkpoint_without_its_optimizer_is_refused(finished, tmp_path):
    result = train(tmp_path, '--resume', finished / 'run/best_accuracy_top1_epoch_2.pth')
    assert_one_line(result, 'best_accuracy_top1_epoch_2.pth has no state of a training run: start from its weights')


def test_batches_of_a_batch_sampler_go_on_too(tmp_path):
    """The same batches as those of a sampler, in the same order."""
    # The schedule of a longer run, so that two epochs are a part of it.
    options = ['train_dataloader.drop_last=False', 'param_scheduler.1.end=15']
    name = 'train_dataloader.batch_sampler'
    sampler = [f'{name}.type=torch.utils.data.BatchSampler', f'{name}.drop_last=True']
    ends = []
    for name, parts in (('whole', [[]]), ('parts', [['train_cfg.max_epochs=2'], []])):
        (tmp_path / name).mkdir()
        for number, part in enumerate(parts):
            resume = ['--resume'] if number else []
            result = train(tmp_path / name, *resume, options=[*options, *(sampler if name == 'parts' else []), *part])
            assert result.returncode == 0, result.stderr
        ends.append(tmp_path / name / 'run')
    assert_same_end(*ends)
