"""The console shows what a person needs of a run, its log file everything."""

import contextlib
import io
import logging
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from engine.interruption.small_runs import log_of, train
from forked_tools import run_forked
from mmengine.hooks import LoggerHook

from vt.engine.hooks.console import (
    ConsoleFilter,
    ConsoleHandler,
    ConsoleHook,
    TerminalHandler,
    duration,
    fit,
    is_live_terminal,
)

CONFIG = Path(__file__).parents[2] / 'configs/vt_resnet/vt-resnet18-half_digits.py'
FEW = [*(f'{split}_dataloader.dataset.indices=64' for split in ('train', 'val')), 'train_cfg.max_epochs=2']
FEW += ['model.backbone.base_channels=8', 'model.backbone.stem_channels=8']
LOGGED = ('System environment:', 'Config:\n', '(VERY_LOW    ) CheckpointHook', 'Exp name: ')
LOGGED += ('Checkpoints will be saved to ',)
SCORE = r'The best checkpoint with [\d.]+ accuracy/top1 at {0} epoch is saved to best_accuracy_top1_epoch_{0}.pth.'


def messages(result):
    assert result.returncode == 0, result.stderr
    return [re.sub(r'\x1b\[\d+m', '', line).split(' - ', 3)[-1] for line in result.stdout.splitlines()]


def test_a_training_prints_its_epochs_and_where_its_files_are(tmp_path):
    result = run_forked('train.py', CONFIG, '--work-dir', 'run', cwd=tmp_path, options=FEW)
    assert result.stderr == ''
    (log,) = (tmp_path / 'run').glob('*/*.log')
    wanted = [
        re.escape(f'Environment, config and hooks are in the log: {log}'),
        r'Speed: freed memory .*; --cfg-options speed: channels_last=True, .*',
    ]
    for epoch in (1, 2):
        wanted += [rf'Epoch\(train\) +\[{epoch}\]\[2/2\] .*', f'Saving checkpoint at {epoch} epochs']
        wanted += [rf'Epoch\(val\) +\[{epoch}\]\[\d+/\d+\] .*', SCORE.format(epoch)]
    found = messages(result)
    if len(found) < len(wanted) + 2:  # the second epoch was not better
        del wanted[-1]
    wanted += [r'Best accuracy/top1 [\d.]+: run/best_accuracy_top1_epoch_[12].pth']
    wanted += [r'Next: python \S*tools/test.py run --report report; python \S*tools/predict.py run photo.jpg']
    assert {'curves.png', 'results.csv', 'training.png'} < {path.name for path in (tmp_path / 'run').iterdir()}
    assert len(found) == len(wanted)
    assert [line for pattern, line in zip(wanted, found) if not re.fullmatch(pattern, line)] == []
    assert all(part in log.read_text() for part in LOGGED)


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def __init__(self, encoding='utf-8'):
        super().__init__()
        self._encoding = encoding

    encoding = property(lambda self: self._encoding)

    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    for name in ('FORCE_COLOR', 'NO_COLOR', 'TTY_COMPATIBLE'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', '60')
    return Terminal()


def train_on(terminal, *arguments, **options):
    with contextlib.redirect_stdout(terminal):
        return train(*arguments, **options)


@pytest.mark.parametrize('kind', ['epochs', 'iterations'])
def test_a_terminal_gets_a_live_line_and_one_for_each_validation(tmp_path, terminal, kind):
    train_on(terminal, tmp_path, kind, ConsoleHook(), LoggerHook(interval=1))
    shown = terminal.getvalue()
    finished = [line for line in shown.replace('\r', '\n').split('\n') if re.match(r'(epoch|iteration) [\d/]+: ', line)]
    names = dict(epochs=['epoch 1/3', 'epoch 2/3', 'epoch 3/3'], iterations=[f'iteration {n}/15' for n in (6, 12, 15)])
    assert [line.partition(':')[0] for line in finished] == names[kind]
    assert re.fullmatch(r'.*: loss [\d.e-]+, 0:\d\d, score 1, mean [\d.e-]+  best', finished[0])
    assert re.search(r'\r(epoch 1/3|iteration)  .*1/\d+  loss ', shown)
    assert 'mmengine' not in shown
    assert 'Saving checkpoint' not in shown
    assert 'Epoch(' not in shown
    assert {len(part) for part in re.findall(r'\r([^\r\n]+)\r', shown)} == {59}
    log = log_of(tmp_path)
    assert 'Saving checkpoint' in log
    assert 'Epoch(train)' in log or 'Iter(train)' in log


def test_weights_are_the_same_with_and_without_a_live_line(tmp_path, terminal):
    one = train_on(terminal, tmp_path / 'shown', 'epochs', ConsoleHook()).model.state_dict()
    assert '\repoch' in terminal.getvalue()
    other = train(tmp_path / 'quiet', 'epochs').model.state_dict()
    assert all(one[name].equal(other[name]) for name in other)


def test_no_live_line_without_a_terminal_or_lines_of_this_level(tmp_path, terminal, monkeypatch):
    train_on(terminal, tmp_path, 'epochs', ConsoleHook(), log_level='WARNING')
    assert {line.partition(':')[0] for line in terminal.getvalue().splitlines()} == {'warning'}
    assert is_live_terminal(terminal)
    monkeypatch.setenv('TERM', 'dumb')
    assert not is_live_terminal(terminal)
    monkeypatch.setenv('FORCE_COLOR', '1')
    assert not is_live_terminal(io.StringIO())


def record(text, level=logging.INFO):
    return logging.LogRecord('mmengine', level, __file__, 0, text, None, None)


def test_messages_stand_above_the_live_line_in_any_encoding(terminal):
    narrow = Terminal('cp1252')
    handler = TerminalHandler(logging.StreamHandler(narrow))
    handler.is_live = True
    handler.show('epoch 1/3 ' + '━' * 100)
    handler.emit(record('a name: 猫', logging.WARNING))
    width = handler.console.width - 1
    first, line = narrow.getvalue().split('\n')[0].rsplit('\r', 1)
    assert line == 'warning: a name: ?'
    assert first == '\r' + ('epoch 1/3 ' + '?' * 100)[:width] + '\r\r' + ' ' * width
    narrow.close()
    handler.emit(record('nobody reads this'))
    assert not handler.is_live


def test_a_closed_pipe_is_one_line(capfd):
    read, write = os.pipe()
    os.close(read)
    with open(write, 'w') as pipe:
        handler = ConsoleHandler(logging.StreamHandler(pipe))
        for number in range(3):
            handler.handle(record(f'line {number}', logging.ERROR))
    out, errors = capfd.readouterr()
    assert out == ''
    assert errors == 'warning: nothing more is printed: [Errno 32] Broken pipe; the log file has all lines\n'
    assert handler.level > logging.CRITICAL


@pytest.mark.parametrize('encoding', ['ascii', 'cp1252'])
def test_a_pipe_of_any_encoding(encoding):
    pipe = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    ConsoleHandler(logging.StreamHandler(pipe)).handle(record('a name: 猫'))
    assert pipe.buffer.getvalue() == b'a name: ?\n'


def test_a_terminal_leaves_the_settings_of_speed_to_the_log(terminal):
    runner = SimpleNamespace(hooks=[LoggerHook(interval=10)], epoch=0)
    plain = logging.StreamHandler(terminal)
    needed = [ConsoleFilter(runner, each).is_needed(record('Speed: a')) for each in (plain, TerminalHandler(plain))]
    assert needed == [True, False]


def test_a_pipe_gets_the_end_of_each_pass_and_a_line_a_minute(monkeypatch):
    now = [0.0]
    monkeypatch.setattr('vt.engine.hooks.console.time', SimpleNamespace(monotonic=lambda: now[0]))
    runner = SimpleNamespace(hooks=[LoggerHook(interval=10)], epoch=0)
    needed = ConsoleFilter(runner, logging.StreamHandler()).is_needed
    shown = []
    for epoch in (1, 2):
        for iteration in range(10, 106, 10):  # an epoch has 105 iterations of two seconds
            now[0] += 20
            if needed(record(f'Epoch(train)  [{epoch}][{iteration:3}/105]  lr: 1.0e-03  eta: 0:01')):
                shown.append((epoch, iteration))
        assert not needed(record(f'Epoch(val)   [{epoch}][10/10]    eta: 0:00:01  time: 1'))
        assert needed(record(f'Epoch(val) [{epoch}][10/10]    mIoU: 3.0  time: 1'))
    assert shown == [(1, 10), (1, 40), (1, 70), (1, 100), (2, 30), (2, 60), (2, 90), (2, 100)]
    saved = [needed(record('Saving checkpoint at 10 iterations')) for runner.epoch in (0, 0, 0, 1)]
    assert saved == [True, False, False, True]
    assert not needed(record('paramwise_options -- backbone.a.weight:lr=0.1'))
    assert needed(record('a note'))
    assert needed(record('a warning', logging.WARNING))


@pytest.mark.parametrize('width', [5, 20, 40, 200])
def test_a_narrow_line_keeps_what_is_most_important(width):
    fields = [(0, 'epoch 1/3'), (2, '#' * 16), (1, '5/8')]
    line = fit(fields, width)
    assert line.startswith('epoch 1/3')
    assert len(line) <= max(width, 9)
    assert ('#' in line) == (width >= 32)
    assert ('5/8' in line) == (width >= 14)


def test_durations():
    assert [duration(seconds) for seconds in (0.4, 61, 3600, 90061.0, float('nan'))] == [
        '0:00',
        '1:01',
        '1:00:00',
        '25:01:01',
        '?',
    ]
