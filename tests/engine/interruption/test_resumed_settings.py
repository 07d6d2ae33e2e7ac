"""What a run that goes on says where its config differs from its checkpoint, and what it goes on with."""

import json
import shutil

import pytest
import torch
from engine.interruption.small_runs import differing, loader, log_of, train_few, train_small
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS
from run_comparison import differences, final_checkpoint
from tool_runner import assert_one_line

from vt.errors import UserError

LR, DECAY, SEED = 'optim_wrapper.optimizer.lr', 'optim_wrapper.optimizer.weight_decay', 'randomness.seed'
NEXT, LAST = 'learning rate, next iteration', 'learning rate, last iteration'
SCHEDULE = [dict(type='StepLR', step_size=1, gamma=0.5), dict(type='LinearMomentum', by_epoch=False, end=3)]


def optimizer(kind='SGD', **options):
    return dict(optimizer=dict(type=kind, **dict(lr=0.1, weight_decay=0.01) | options))


def train(folder, epochs=3, **edit):
    start = dict(param_scheduler=SCHEDULE, custom_hooks=[dict(type='EMAHook')], **optimizer(momentum=0.9))
    return train_small(folder, epochs, **start | edit)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """The folder of a run of three epochs of two iterations."""
    folder = tmp_path_factory.mktemp('whole')
    train(folder)
    return folder


@pytest.fixture
def begun(whole, tmp_path):
    """A folder of one that stopped after the first epoch."""
    (tmp_path / 'run').mkdir()
    shutil.copy(whole / 'epoch_1.pth', tmp_path / 'run')
    return tmp_path / 'run'


LOWER = {LR: ('0.1', '0.5', '0.1'), NEXT: ('0.05', '0.25', '0.05'), LAST: ('0.025', '0.125', '0.025')}
LONGER = {NEXT: ('0.05', '0.05', '0.05'), LAST: ('0.025', '0.0125', '0.025')}  # the old schedule goes on
NEW, OTHER = dict(new_schedule=True), dict(param_scheduler=[])


@pytest.mark.parametrize(
    ('edit', 'rows', 'kept'),
    [
        ({}, {}, set()),
        (optimizer(lr=0.5, momentum=0.9), LOWER, {LR}),
        (optimizer(weight_decay=0.25, momentum=0.9), {DECAY: ('0.01', '0.25', '0.01')}, {DECAY}),
        (dict(randomness=dict(seed=5)), {SEED: ('1', '5', '1')}, {SEED}),
        (
            NEW | optimizer(lr=0.5, momentum=0.9, weight_decay=0.25),
            {key: (had, asked, asked) for key, (had, asked, _) in LOWER.items()} | {DECAY: ('0.01', '0.25', '0.25')},
            set(),
        ),
        (
            dict(wrapper=dict(clip_grad=dict(max_norm=1.5))),
            {'optim_wrapper.clip_grad.max_norm': ('None', '1.5', '1.5')},
            set(),
        ),
        (dict(epochs=4), {'train_cfg.max_epochs': ('3', '4', '4')} | LONGER, set()),
    ],
)
def test_what_differs_is_said_and_recorded(edit, rows, kept, begun, whole, tmp_path):
    """With kept settings the run ends as it would have; with a new schedule as one that had it from its start."""
    runner = train(begun, resume=True, **edit)
    log = log_of(begun)
    assert differing(log) == rows
    assert log.count('The checkpoint and the config differ') == bool(rows)
    verbose = (DECAY in rows or LAST in rows) and 'new_schedule' not in edit
    assert ('--new-schedule uses learning rate, decay and schedule of the config' in log) == verbose
    assert runner.message_hub.get_info('kept_settings').keys() == kept
    settings = json.loads(final_checkpoint(begun)['meta']['settings'])
    assert {key: str(settings.get(key)) for key in rows if key not in (NEXT, LAST)} == {
        key: used for key, (_, _, used) in rows.items() if key not in (NEXT, LAST)
    }
    if kept or not edit:
        assert differences(final_checkpoint(begun), final_checkpoint(whole)) == []
    if 'new_schedule' in edit:
        train(tmp_path / 'other', **edit)
        ends = [final_checkpoint(folder) for folder in (begun, tmp_path / 'other')]
        assert ends[0]['optimizer']['param_groups'] == ends[1]['optimizer']['param_groups']
        assert ends[0]['param_schedulers'] == ends[1]['param_schedulers']


@pytest.mark.parametrize(
    ('edit', 'message'),
    [
        (
            dict(param_scheduler=[]),
            'the checkpoint has other schedulers than the config: .* or add --new-schedule',
        ),
        (NEW | OTHER | optimizer('Adadelta'), 'the checkpoint has the optimizer SGD, but the config has Adadelta'),
        (OTHER | optimizer('ASGD'), 'the checkpoint has the optimizer SGD, but the config has ASGD: resume with'),
        (
            dict(wrapper=dict(paramwise_cfg=dict(norm_decay_mult=0.0))),
            'the checkpoint has 1 parameter groups, the run ',
        ),
        (dict(custom_hooks=[]), r'has averaged \(EMA\) weights, but the config has no EMAHook'),
        (
            dict(train_dataloader=loader(batch_size=2)) | optimizer(lr=0.5),
            'the schedule counts iterations, an epoch of the checkpoint has another number',
        ),
        (None, r'the checkpoint lacks the settings of its run \(vt.ResumeHook\): use load_from'),
    ],
)
def test_what_does_not_fit_is_refused(edit, message, begun):
    path = begun / 'epoch_1.pth'
    if edit is None:
        checkpoint = torch.load(path, weights_only=True)
        del checkpoint['meta']['settings']
        torch.save(checkpoint, path)
    before = path.read_bytes()
    with pytest.raises(UserError, match=message):
        train(begun, resume=True, **edit or {})
    assert [*begun.glob('*.pth')] == [path]
    assert path.read_bytes() == before


@pytest.mark.parametrize('by_epoch', [True, False])
def test_a_run_goes_on_in_its_own_unit(by_epoch, tmp_path):
    loops = [dict(type='vt.EpochBasedTrainLoop', max_epochs=2), dict(type='IterBasedTrainLoop', max_iters=4)]
    kinds = [dict(train_cfg=loop, checkpoint=dict(by_epoch='Epoch' in loop['type'], interval=1)) for loop in loops]
    then, now = kinds if by_epoch else kinds[::-1]
    train_small(tmp_path, **then)
    with pytest.raises(UserError, match=r'the checkpoint is of a run by .*: resume with the same kind of loop, or '):
        train_small(tmp_path, resume=True, **now)


@DATASETS.register_module()
class LabelledPoints(BaseDataset):
    """Points with labels, and names of their classes."""

    def __init__(self, classes, labels):
        self.labels = labels
        super().__init__(metainfo=dict(classes=classes), pipeline=[lambda info: dict(inputs=torch.ones(3))])

    def load_data_list(self):
        return [dict(gt_label=label) for label in self.labels]


ROW, COUNT = 'labels of the training samples (checksum)', 'number of training samples'


BEGUN = (('cat', 'dog'), [0, 1] * 4)
SEEN = r'in the checkpoint \(2 classes\), but'


@pytest.mark.parametrize(
    ('classes', 'labels', 'expected'),
    [
        (*BEGUN, set()),
        (('Cat', 'dog'), [0, 1] * 4, set()),  # as another file system shows it
        (('cat', 'dog'), [1, 0] * 4, {ROW}),
        (('cat', 'dog'), [0, 1] * 4 + [0], {ROW, COUNT}),
        (('cat', 'fox'), [0, 1] * 4, f"label 1 is 'dog' {SEEN} 'fox' in the training data .2 classes.: give the data"),
        (('tac', 'god'), [0, 1] * 4, f"label 0 is 'cat' {SEEN} 'tac' in the training data .2 classes"),
        (('dog', 'cat'), [0, 1] * 4, f"label 0 is 'cat' {SEEN} 'dog' in the training data .2 classes"),
        (('cat', 'cow', 'dog'), [0, 1] * 4, f"label 1 is 'dog' {SEEN} 'cow' in the training data .3 classes"),
        (('cat',), [0] * 8, f"label 1 is 'dog' {SEEN} no class in the training data .1 classes"),
    ],
)
def test_classes_stay_and_other_labels_or_samples_are_said(classes, labels, expected, tmp_path):
    def run(epochs, *data, **options):
        dataset = dict(zip(('type', 'classes', 'labels'), ('LabelledPoints', *data)))
        train_small(tmp_path, epochs, train_dataloader=loader(drop_last=True) | dict(dataset=dataset), **options)

    run(1, *BEGUN)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            run(2, classes, labels, resume=True)
    else:
        run(2, classes, labels, resume=True)
        assert {row for row in differing(log_of(tmp_path)) if not row.startswith(('train_', 'learning'))} == expected


@pytest.mark.parametrize(('batch_size', 'new'), [(2, False), (8, True)])
def test_epochs_of_another_length_go_on_at_the_same_epoch(batch_size, new, begun, tmp_path):
    """With another batch size, or number of processes, the schedule ends with the last iteration, as in a whole run."""
    options = dict(train_dataloader=loader(batch_size=batch_size))
    train(tmp_path / 'whole', **options)
    train(begun, resume=True, new_schedule=new, **options)
    assert f'Epochs have {8 // batch_size} iterations now, and had 2 in the checkpoint' in log_of(begun)
    found, expected = (final_checkpoint(folder) for folder in (begun, tmp_path / 'whole'))
    assert found['meta']['iter'] == expected['meta']['iter'] == 3 * 8 // batch_size
    assert [group['lr'] for group in found['optimizer']['param_groups']] == [
        group['lr'] for group in expected['optimizer']['param_groups']
    ]


def test_a_tool_prints_and_records_it_and_leaves_the_config_of_the_training(used):
    """A resumed run and a test do not leave their own settings in it, so that it trains again from the start."""
    for path in [*(used / 'run').glob('*epoch_[23].pth'), used / 'run/last_checkpoint']:
        path.unlink()
    result = train_few(used, '--resume', '--new-schedule', options=['default_hooks.resume=None'])
    assert_one_line(result, '--new-schedule requires vt.ResumeHook')
    result = train_few(used, '--resume', options=[f'{LR}=0.5', 'train_cfg.max_epochs=2'])
    assert result.returncode == 0, result.stderr
    before = (used / 'run/epochs.py').read_text()
    left = Config.fromfile(used / 'run/epochs.py')
    assert (left.get('load_from'), left.get('resume', False)) == (None, False)
    rows = differing(result.stdout)
    assert (rows[LR][1], rows[LR][2]) == ('0.5', rows[LR][0])
    record = json.loads((used / 'run/training.json').read_text())
    assert f'{record["options"][LR]:.6g}' == rows[LR][0]
    assert record['kept_settings'].keys() == {LR}
    arguments, few = ['run/epochs.py', 'run/epoch_2.pth', '--work-dir', 'run'], ['test_dataloader.dataset.indices=8']
    result = run_forked('test.py', *arguments, cwd=used, options=few)
    assert result.returncode == 0, result.stderr
    (path,) = (used / 'run').glob('*/epochs.py')
    assert Config.fromfile(path).load_from == 'run/epoch_2.pth'
    assert (used / 'run/epochs.py').read_text() == before
