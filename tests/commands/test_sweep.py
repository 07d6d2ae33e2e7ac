"""Sweeps: a failed run leaves the others alone, and a stopped sweep goes on."""

import json
import signal
import threading
import time

import pytest
from forked_tools import ForkedTool, run_forked
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

from vt.commands.sweep import find_reason, plan, train_all, train_run
from vt.errors import UserError

CONFIG = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
SMALL = [option for option in SMALL_CLASSIFIER if 'num_tokens' not in option and 'test_' not in option]
SMALL += ['train_cfg.max_epochs=1']
FOLDER = 'work_dirs/sweeps/vt-resnet18_digits'


def records(folder):
    return {path.parent.name: json.loads(path.read_text()) for path in folder.glob('*/training.json')}


@pytest.mark.parametrize(
    ('output', 'reason'),
    [
        ('Loading\nerror: no such file\n\nleaked 4 instances!\n', 'error: no such file'),
        ('Traceback:\n  line 3\nRuntimeError: 3\n', 'RuntimeError: 3'),
        ('', 'exit code 1'),
    ],
)
def test_the_reason_of_a_failure_is_its_error(output, reason):
    assert find_reason(output, 1) == reason


def test_the_reason_of_a_killed_run_is_its_signal():
    output = 'ValueError: caught\nINFO - Epoch(train) [1][10/45] loss: 0.3\n'
    assert find_reason(output, -9) == 'killed by signal 9 (Killed); the memory of the machine may be too small'
    assert find_reason(output, -15) == 'killed by signal 15 (Terminated)'


@pytest.mark.parametrize(('visible', 'devices'), [(None, ['0', '1', '0']), ('2,GPU-5', ['2', 'GPU-5', '2'])])
def test_runs_get_the_gpus_that_the_sweep_sees(tmp_path, monkeypatch, visible, devices):
    """Without a GPU, what can be seen is the environment of a run: a program prints it in the place of Python."""
    program = tmp_path / 'python'
    program.write_text('#!/bin/bash\necho "$CUDA_VISIBLE_DEVICES"\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr('sys.executable', str(program))
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    found = []
    for slot, run in enumerate(plan('c.py', ['x=1,2,3'], [0], tmp_path / 'sweep')):
        run.work_dir.mkdir(parents=True)
        found.append(train_run(run, slot % 2))
    assert found == devices


def test_an_unexpected_error_of_a_run_leaves_the_others_their_place(tmp_path, monkeypatch, capsys):
    def train(run, device):
        if run.label != 'x=3':
            raise ValueError('of another library')

    monkeypatch.setattr('vt.commands.sweep.train_run', train)
    with pytest.raises(UserError, match=r'2 of 3 runs failed, .*x=1, seed 0: .*library; x=2, seed 0: '):
        train_all(plan('c.py', ['x=1,2,3'], [0], tmp_path), tmp_path, jobs=1)
    assert 'x=3, seed 0: finished' in capsys.readouterr().out


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


def test_a_failed_run_is_named_and_the_report_has_the_others(tmp_path):
    arguments = [CONFIG, 'model.backbone.num_tokens=4,-3', *SMALL]
    result = run_forked('sweep.py', *arguments, cwd=tmp_path)
    assert_one_line(result, '1 of 2 runs failed, see output.txt of each: num_tokens=-3, seed 0: ')
    assert 'num_tokens=4, seed 0: finished' in result.stdout
    (record,) = records(tmp_path / FOLDER).values()
    assert record['options']['model.backbone.num_tokens'] == 4
    result = run_forked('analysis/report.py', 'sweep', FOLDER, '--out', 'report', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert 'Not finished: num_tokens=-3_seed-0.' in result.stdout
    assert 'num_tokens=4' in (tmp_path / 'report/sweep.md').read_text()
    assert 'images/s in training' in (tmp_path / 'report/sweep.csv').read_text()


@pytest.mark.slow
def test_a_damaged_record_is_named_and_written_again(tmp_path):
    options = [CONFIG, *SMALL, 'model.backbone.num_tokens=4']
    assert run_forked('sweep.py', *options, cwd=tmp_path).returncode == 0
    (path,) = (tmp_path / FOLDER).glob('*/training.json')
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    result = run_forked('sweep.py', *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    again, before = json.loads(path.read_text()), json.loads(text)
    assert [again[key] for key in ('weights', 'metrics', 'digest')] == [
        before[key] for key in ('weights', 'metrics', 'digest')
    ]


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path):
    arguments = [CONFIG, 'model.backbone.num_tokens=2,4,8', '--seeds', '0:2', *SMALL]
    tool = ForkedTool('sweep.py', *arguments, cwd=tmp_path)
    while not records(tmp_path / FOLDER):
        time.sleep(0.2)
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    before = records(tmp_path / FOLDER)
    assert len(before) < 6
    while (result := run_forked('sweep.py', *arguments, cwd=tmp_path)).returncode:
        assert 'is in use by another training' in result.stderr  # those of the killed sweep may go on
    after = records(tmp_path / FOLDER)
    assert len(after) == 6
    assert before.items() <= after.items()
    result = run_forked('sweep.py', *arguments, cwd=tmp_path)
    assert '6 runs in' in result.stdout
    assert '6 of them finished before' in result.stdout
    result = run_forked('analysis/report.py', 'sweep', FOLDER, cwd=tmp_path)
    assert result.stdout.count('num_tokens=') == 3
