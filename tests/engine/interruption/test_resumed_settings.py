"""What a run that goes on says where its config differs from its checkpoint, and what it goes on with."""

import json
import shutil
from pathlib import Path

import pytest
from forked_tools import run_forked
from mmengine.config import Config
from run_comparison import assert_same_end, final_checkpoint
from tool_runner import assert_one_line

CONFIG = Path(__file__).parent / 'epochs.py'
FEW = ['train_cfg.max_epochs=2', 'train_dataloader.num_workers=0', 'train_dataloader.persistent_workers=False']
FEW += ['default_hooks.checkpoint.max_keep_ckpts=-1']
LR, DECAY = 'optim_wrapper.optimizer.lr', 'optim_wrapper.optimizer.weight_decay'
NEXT, LAST = 'learning rate, next iteration', 'learning rate, last iteration'


def train(folder, *arguments, options=()):
    arguments = [CONFIG, '--skip-data-check', '--work-dir', 'run', *arguments]
    return run_forked('train.py', *arguments, cwd=folder, options=[*FEW, *options])


def table(result):
    """The rows of the table in a log, by setting: what the checkpoint has, what is asked for, what is used."""
    assert result.returncode == 0, result.stderr
    rows = [line.strip('| ').split(' | ') for line in result.stdout.splitlines() if line.startswith('| ')]
    return {setting.strip(): tuple(cell.strip() for cell in cells) for setting, *cells in rows[1:]}


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """A folder with the work directory of a run of two epochs."""
    folder = tmp_path_factory.mktemp('finished')
    result = train(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of it that stopped after the first epoch."""
    shutil.copytree(finished / 'run', tmp_path / 'run')
    for pattern in ('*epoch_2.pth', 'last_checkpoint', 'training.json'):
        for path in (tmp_path / 'run').glob(pattern):
            path.unlink()
    return tmp_path


def test_where_nothing_differs_nothing_is_said(copied, finished):
    result = train(copied, '--resume')
    assert table(result) == {}
    assert 'The checkpoint and the config differ' not in result.stdout
    assert_same_end(copied / 'run', finished / 'run')
    assert json.loads((copied / 'run/training.json').read_text())['kept_settings'] == {}


def test_the_saved_config_is_that_of_the_training(copied):
    """A resumed run and a test do not leave their own settings in it, so that it trains again from the start."""
    before = (copied / 'run/epochs.py').read_text()
    result = train(copied, '--resume', '--new-schedule')
    assert result.returncode == 0, result.stderr
    assert (copied / 'run/epochs.py').read_text() == before
    few = ['test_dataloader.dataset.indices=8']
    arguments = ['run/epochs.py', 'run/epoch_2.pth', '--work-dir', 'run']
    result = run_forked('test.py', *arguments, cwd=copied, options=few)
    assert result.returncode == 0, result.stderr
    assert (copied / 'run/epochs.py').read_text() == before
    (path,) = (copied / 'run').glob('*/epochs.py')
    assert Config.fromfile(path).load_from == 'run/epoch_2.pth'
    refused = run_forked('test.py', *arguments, cwd=copied, options=['model.head.num_classes=3'])
    assert_one_line(refused, "is not the model's")
    assert (copied / 'run/epochs.py').read_text() == before


def test_what_the_checkpoint_brings_is_said_and_recorded(copied, finished):
    options = [f'{LR}=0.5', f'{DECAY}=0.25', 'randomness.seed=5', 'optim_wrapper.clip_grad.max_norm=1.5']
    result = train(copied, '--resume', options=options)
    rows = table(result)
    had = json.loads(final_checkpoint(finished / 'run')['meta']['settings'])
    assert rows[LR] == (f'{had[LR]:.6g}', '0.5', f'{had[LR]:.6g}')
    assert rows[DECAY] == (f'{had[DECAY]:.6g}', '0.25', f'{had[DECAY]:.6g}')
    assert rows['randomness.seed'][1:] == ('5', rows['randomness.seed'][0])
    assert rows['optim_wrapper.clip_grad.max_norm'] == ('1', '1.5', '1.5')
    assert rows[NEXT][0] == rows[NEXT][2] != rows[NEXT][1]
    assert set(rows) == {LR, DECAY, 'randomness.seed', 'optim_wrapper.clip_grad.max_norm', NEXT, LAST}
    assert result.stdout.count('The checkpoint and the config differ') == 1
    assert '--new-schedule uses learning rate, decay and schedule of the config' in result.stdout
    assert 'Epoch(train) [1]' not in result.stdout
    record = json.loads((copied / 'run/training.json').read_text())
    assert (record['options'][LR], record['options'][DECAY]) == (had[LR], had[DECAY])
    assert record['kept_settings'].keys() == {LR, DECAY, 'randomness.seed'}
    assert str(record['seed']) == rows['randomness.seed'][0]
    settings = json.loads(final_checkpoint(copied / 'run')['meta']['settings'])
    assert (settings[LR], settings['optim_wrapper.clip_grad.max_norm']) == (had[LR], 1.5)


def test_the_flag_takes_those_of_the_config(copied):
    """The learning rate of the next iteration is that of a run that had the new settings from its start."""
    options = [f'{LR}=0.5', f'{DECAY}=0.25']
    (copied / 'whole').mkdir()
    assert train(copied / 'whole', options=options).returncode == 0
    result = train(copied, '--resume', '--new-schedule', options=options)
    rows = table(result)
    assert rows[LR][1:] == ('0.5', '0.5')
    assert rows[NEXT][1] == rows[NEXT][2]
    groups, expected = (
        final_checkpoint(path / 'run')['optimizer']['param_groups'] for path in (copied, copied / 'whole')
    )
    assert groups == expected
    schedulers, expected = (final_checkpoint(path / 'run')['param_schedulers'] for path in (copied, copied / 'whole'))
    assert schedulers == expected
    record = json.loads((copied / 'run/training.json').read_text())
    assert record['options'][LR] == 0.5
    assert record['kept_settings'] == {}
    assert table(train(copied, '--resume', options=[*options, 'train_cfg.max_epochs=2'])) == {}


def test_a_longer_training(copied):
    """The schedule goes on as it was, which the table shows by the learning rate at the end."""
    result = train(
        copied, '--resume', options=['train_cfg.max_epochs=4', 'param_scheduler.1.end=4', 'param_scheduler.1.T_max=4']
    )
    rows = table(result)
    assert rows['train_cfg.max_epochs'] == ('2', '4', '4')
    assert rows[LAST][0] == rows[LAST][2] != rows[LAST][1]


@pytest.mark.parametrize(
    ('options', 'arguments', 'message'),
    [
        (['param_scheduler=None'], [], 'other schedulers than param_scheduler'),
        (
            ['optim_wrapper.optimizer.type=Adadelta'],
            ['--new-schedule'],
            'has the optimizer AdamW, and the config Adadelta',
        ),
        (['optim_wrapper.optimizer.type=Adam'], [], 'has the optimizer AdamW, and the config Adam: resume with'),
        (['optim_wrapper.paramwise_cfg.norm_decay_mult=0.0'], [], 'parameter groups, not '),
        (['custom_hooks=[]'], [], 'has averaged weights beside those that were trained, and the config has no EMAHook'),
        (['train_dataloader.batch_size=4', f'{LR}=0.5'], [], 'have another number of iterations, which its schedule'),
    ],
)
def test_what_does_not_fit_is_refused(options, arguments, message, copied):
    before = {path: path.read_bytes() for path in (copied / 'run').glob('*.pth')}
    assert_one_line(train(copied, '--resume', *arguments, options=options), message)
    assert {path: path.read_bytes() for path in (copied / 'run').glob('*.pth')} == before


@pytest.mark.parametrize(('batch_size', 'arguments'), [(4, []), (20, ['--new-schedule'])])
def test_epochs_of_another_length_go_on_at_the_same_epoch(copied, batch_size, arguments):
    """With another batch size, or number of processes, the schedule ends with the last iteration, as in a whole run."""
    options = [f'train_dataloader.batch_size={batch_size}']
    (copied / 'whole').mkdir()
    assert train(copied / 'whole', options=options).returncode == 0
    result = train(copied, '--resume', *arguments, options=options)
    assert f'Epochs have {40 // batch_size} iterations now, and had 5 in the checkpoint' in result.stdout
    rates = {}
    for path in (copied, copied / 'whole'):
        checkpoint = final_checkpoint(path / 'run')
        assert checkpoint['meta']['iter'] == 2 * 40 // batch_size
        rates[path] = [group['lr'] for group in checkpoint['optimizer']['param_groups']]
    assert rates[copied] == rates[copied / 'whole']


def test_the_flag_where_it_has_no_effect(copied, tmp_path):
    assert_one_line(train(tmp_path, '--new-schedule'), 'add --resume')
    result = train(copied, '--resume', '--new-schedule', options=['default_hooks.resume=None'])
    assert_one_line(result, '--new-schedule needs vt.ResumeHook')
