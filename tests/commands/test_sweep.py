"""Sweeps: which runs they have and where; a failed run leaves the others alone, and a stopped sweep goes on."""

import itertools
import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from analysis.test_scores import record as finished
from analysis.test_scores import write_run
from forked_tools import ForkedTool, fork_command, run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line, call, succeed

from vt.commands.reports import report_sweep
from vt.commands.sweep import claim, find_reason, last_change, note_order, plan, train_all, train_run
from vt.errors import UserError

CONFIG = str(ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py')
SMALL = [option for option in SMALL_CLASSIFIER if 'num_tokens' not in option and 'test_' not in option]
SMALL += ['train_cfg.max_epochs=1']
FOLDER = 'work_dirs/sweeps/vt-resnet18-half_digits'


def labels(*settings):
    known = ['model.tokenizer.type', 'model.type', 'model.depth', 'train.loader.batch_size', 'val.loader.batch_size']
    return [run.label for run in plan('configs/a_digits.py', settings, [0], Path('sweep'), known)]


def test_every_combination_with_every_seed():
    runs = plan('configs/a_digits.py', ['optim.lr=0.1,0.2', 'model.depth=18'], [0, 3], Path('sweep'))
    places = [f'sweep/lr={lr}_seed-{seed}' for seed in (0, 3) for lr in (0.1, 0.2)]
    assert [run.work_dir.as_posix() for run in runs] == places
    assert [run.seed for run in runs] == [0, 0, 3, 3]
    assert runs[1].settings == ('optim.lr=0.2', 'model.depth=18')


@pytest.mark.parametrize(
    ('settings', 'expected'),
    [
        ([], ['a_digits']),
        (['a.b.x=1,2', 'a.c.x=3,4'], ['b.x=1_c.x=3', 'b.x=1_c.x=4', 'b.x=2_c.x=3', 'b.x=2_c.x=4']),
        (['model.depth=16,8', 'x=1'], ['depth=16', 'depth=8']),
        (['model.tokenizer.type=vt.A,B'], ['tokenizer.type=vt.A', 'tokenizer.type=B']),
        (['model.later.type=vt.A,B'], ['later.type=vt.A', 'later.type=B']),
        (['train.loader.batch_size=1,2'], ['train.loader.batch_size=1', 'train.loader.batch_size=2']),
        (['steps.0.size=1,2', 'steps.1.size=3'], ['size=1', 'size=2']),
        (['steps.0=1,2'], ['steps.0=1', 'steps.0=2']),
        (['x=1,2', 'a.y=3,4'], ['x=1_y=3', 'x=1_y=4', 'x=2_y=3', 'x=2_y=4']),
        (['data_root="a,b",c'], ['data_root=a_b', 'data_root=c']),
        (['norm=-1,1e-3'], ['norm=-1', 'norm=1e-3']),
        (['fold=1:3', 'lr=0.1,0.2'], ['fold=1_lr=0.1', 'fold=1_lr=0.2', 'fold=2_lr=0.1', 'fold=2_lr=0.2']),
    ],
)
def test_names_are_as_short_as_they_tell_apart(settings, expected):
    assert labels(*settings) == expected


@pytest.mark.parametrize(
    ('setting', 'words'),
    [
        *((setting, 'must have the form key=value,value') for setting in ('lr', 'lr=', 'lr=1,', '=1,2', 'fold=3:3')),
        ('lr=1,1', 'two combinations have the same name'),
        ('randomness.seed=1', 'randomness.seed cannot be swept: use'),
        ('work_dir=1', 'work_dir cannot be swept: use'),
    ],
)
def test_what_is_no_setting_is_named(setting, words):
    with pytest.raises(UserError, match=words):
        labels(setting)


@pytest.fixture
def run(tmp_path):
    return replace(plan('c.py', [], [3], tmp_path)[0], digest='a' * 32)


def record(run, text=None, **content):
    run.work_dir.mkdir(parents=True, exist_ok=True)
    (run.work_dir / 'training.json').write_text(text or json.dumps(dict(digest=run.digest, seed=3) | content))


@pytest.mark.parametrize('ends', [{}, dict(text='{"digest": "aaa')])
def test_a_run_has_its_folder_again_until_it_is_finished_and_then(ends, run):
    for _ in range(2):
        claim(run)
        assert not run.is_finished
    record(run, **ends)
    claim(run)
    assert run.is_finished == (not ends)


@pytest.mark.parametrize(
    ('claimed', 'content', 'change'),
    [
        (True, {}, dict(digest='b' * 32)),
        (True, dict(digest='b' * 32), {}),  # tools/train.py was called by hand
        (True, dict(seed=4), {}),
        *((False, dict(text=text), {}) for text in ('{"config": "c.py", "seed": 3}', '{"digest": "aaa', '[]')),
    ],
)
def test_the_folder_of_another_run_is_refused(claimed, content, change, run):
    if claimed:
        claim(run)
    record(run, **content)
    words = 'c_seed-3 contains a run with other settings, or with data or weights that have changed since: remove it'
    with pytest.raises(UserError, match=words):
        claim(replace(run, **change))


def test_a_run_of_earlier_data_is_refused(run):
    for _ in range(2):
        claim(replace(run, changed=time.time() - 60))
    with pytest.raises(UserError, match='contains a run with other settings, or with data'):
        claim(replace(run, changed=time.time() + 60))


def test_when_data_changed_last(tmp_path):
    """By files and folders of the data; not by the sweep's own, nor by files beside it."""
    image, weights, output = (tmp_path / name for name in ('data/train/0.png', 'first.pth', 'runs/sweep/output.txt'))
    times = {image: 10, image.parent: 20, image.parents[1]: 10, weights: 30, output: 99, output.parents[1]: 5}
    for path in (image, weights, output):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for path, time_of_change in times.items():
        os.utime(path, (time_of_change, time_of_change))
    for paths, expected in (
        ([image.parents[1]], 20),  # of the folder, from which a file was removed
        ([image, tmp_path / 'missing'], 10),
        ([image, weights], 30),
        ([tmp_path], 20),
    ):
        assert last_change(map(str, paths), output.parent) == expected


@pytest.mark.parametrize(
    ('output', 'code', 'reason'),
    [
        ('Loading\nerror: no such file\n\nleaked 4 instances!\n', 1, 'error: no such file'),
        ('Traceback:\n  line 3\nRuntimeError: 3\n', 1, 'RuntimeError: 3'),
        ('', 1, 'exit code 1'),
        ('ValueError: caught\n', -9, 'killed by signal 9 (Killed); the memory of the machine may be too small'),
    ],
)
def test_the_reason_of_a_failure_is_its_error_or_its_signal(output, code, reason):
    assert find_reason(output, code) == reason


@pytest.mark.parametrize(('visible', 'devices'), [(None, ['0', '1', '0']), ('2,GPU-5', ['2', 'GPU-5', '2'])])
def test_runs_get_the_gpus_that_the_sweep_sees(tmp_path, monkeypatch, visible, devices):
    """Without a GPU, what can be seen is the environment of a run: a program prints it in the place of Python."""
    program = tmp_path / 'python'
    program.write_text('#!/bin/bash\necho "$CUDA_VISIBLE_DEVICES ${@: -2}"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr('sys.executable', str(program))
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    found = []
    for slot, run in enumerate(plan('c.py', ['x=1,2,3'], [5], tmp_path / 'sweep')):
        run.work_dir.mkdir(parents=True)
        found.append(train_run(run, slot % 2))
    assert found == [f'{device} randomness.seed=5 x={x}' for device, x in zip(devices, (1, 2, 3))]


def test_an_interrupted_sweep_waits_for_its_run_and_starts_no_other(tmp_path, monkeypatch):
    events = []

    def train(run, device):
        events.append(f'{run.label} begins')
        time.sleep(0.2)  # all are waiting
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.5)
        events.append(f'{run.label} ends')

    monkeypatch.setattr('vt.commands.sweep.train_run', train)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    with pytest.raises(KeyboardInterrupt):
        train_all(plan('c.py', ['x=1,2,3'], [0], tmp_path), tmp_path, jobs=1)
    signal.signal(signal.SIGINT, before)
    assert events == ['x=1 begins', 'x=1 ends']


def test_rows_have_the_order_of_the_command_and_its_first_is_the_reference(tmp_path, capsys):
    note_order(['n=2', 'n=16'], tmp_path)
    note_order(['n=16', 'n=8'], tmp_path)
    scores = {'n=16': 60.0, 'n=8': 90.0, 'n=2': 50.0, 'm=1': 70.0}  # the last is of no command
    for seed, (label, score) in itertools.product((1, 0), scores.items()):
        run = finished(label, seed, score + seed) | dict(config='c.py')
        write_run(tmp_path / f'{label}_seed-{seed}', run)
    report_sweep(SimpleNamespace(folder=tmp_path, out=None))
    rows = [[*map(str.strip, line.split('|')[1:5])] for line in capsys.readouterr().out.splitlines() if '=' in line]
    assert [row[0] for row in rows] == [*scores]
    assert [row[1] for row in rows] == [f'{score:.2f}, {score + 1:.2f}' for score in scores.values()]
    assert [row[3].split(' ')[0] for row in rows] == ['', '+30.00', '-10.00', '+10.00']


def records(folder):
    return {path.parent.name: json.loads(path.read_text()) for path in folder.glob('*/training.json')}


def test_a_failed_run_is_named_and_the_report_has_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr('vt.commands.sweep.subprocess', SimpleNamespace(run=fork_command, STDOUT=None))
    result = call('sweep.py', CONFIG, 'model.backbone.num_tokens=4,-3', *SMALL, cwd=tmp_path)
    assert_one_line(result, '1 of 2 runs failed, see output.txt of each: num_tokens=-3, seed 0: ')
    assert 'num_tokens=4, seed 0: finished' in result.stdout
    (found,) = records(tmp_path / FOLDER).values()
    assert found['options']['model.backbone.num_tokens'] == 4
    result = succeed(call('analysis/report.py', 'sweep', FOLDER, '--out', 'report', cwd=tmp_path))
    assert 'Not finished: num_tokens=-3_seed-0.' in result.stdout
    assert 'num_tokens=4' in (tmp_path / 'report/sweep.md').read_text()
    assert 'images/s in training' in (tmp_path / 'report/sweep.csv').read_text()


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_writes_a_damaged_record_again(tmp_path):
    arguments = [CONFIG, 'model.backbone.num_tokens=2,4,8', '--seeds', '0:2', *SMALL]
    tool = ForkedTool('sweep.py', *arguments, cwd=tmp_path)
    while not records(tmp_path / FOLDER):
        time.sleep(0.2)
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    before = records(tmp_path / FOLDER)
    assert len(before) < 6
    damaged = tmp_path / FOLDER / next(iter(before)) / 'training.json'
    damaged.write_text(damaged.read_text()[:-100])
    while (result := run_forked('sweep.py', *arguments, cwd=tmp_path)).returncode:
        assert 'is in use by another training' in result.stderr  # those of the killed sweep may go on
    after = records(tmp_path / FOLDER)
    assert len(after) == 6
    for name, content in before.items():
        assert all(after[name][key] == content[key] for key in ('weights', 'metrics', 'digest'))
    result = run_forked('sweep.py', *arguments, cwd=tmp_path)
    assert '6 runs in' in result.stdout
    assert '6 of them finished before' in result.stdout
    result = run_forked('analysis/report.py', 'sweep', FOLDER, cwd=tmp_path)
    assert result.stdout.count('num_tokens=') == 3
