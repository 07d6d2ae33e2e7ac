"""What is one line, and what shows its traceback."""

import signal

import pytest
import torch
from mmengine.logging import MMLogger
from torch._utils import ExceptionWrapper

from vt.engine.reporting import SampleError, describe, naming_sample, one_line_errors
from vt.errors import MissingFileError, UserError


class Data:
    """A data set whose samples can't be loaded."""

    def get_data_info(self, index):
        return dict(img_path=f'{index}.png')


@pytest.mark.parametrize(
    ('error', 'line'),
    [
        (UserError('a\n  b'), 'a b'),
        (MissingFileError('there is no a.pth'), 'there is no a.pth'),
        (FileNotFoundError(2, 'No such file', 'data/x'), 'there is no data/x: put it there, or correct its path'),
        (PermissionError(13, 'Permission denied', 'out'), 'permission denied for out: change its permissions'),
        (OSError(28, 'No space left on device', 'a.pth'), 'no disk space is left for a.pth: free some'),
        (OSError(28, 'No space left on device'), 'no disk space is left for a file of this run'),
        (OSError(40, 'Too many levels of symbolic links', 'run.lock'), 'Too many levels of symbolic links: run.lock'),
        (OSError(30, 'Read-only file system', 'out'), 'out is on a read-only file system'),
        (OSError(24, 'Too many open files'), 'too many files are open: raise the limit (ulimit -n'),
        (FileNotFoundError(2, 'No usable temporary directory found in /tmp'), 'No usable temporary directory found in'),
        (IsADirectoryError(21, 'Is a directory', 'run.lock'), 'run.lock is a folder where a file is needed: remove it'),
        (
            ImportError('libGL.so.1: cannot open shared object file: No such file'),
            'the system library libGL.so.1 is missing: install',
        ),
        (ImportError('no module a.so'), 'ImportError: no module a.so: install the missing package'),
        (OSError(98, 'Address already in use'), 'the port is in use: set MASTER_PORT'),
        (torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.'), 'out of memory: lower'),
        (MemoryError(), 'out of memory: lower'),
    ],
)
def test_what_a_person_can_mend_is_one_line(error, line):
    assert describe(error).startswith(line)


def test_a_work_directory_that_was_removed(tmp_path):
    (tmp_path / 'run/0').mkdir(parents=True)
    MMLogger.get_instance('removed', log_file=str(tmp_path / 'run/0/0.log'))
    for path, words in (('run/0/vis_data/0.json', 'was removed during the run'), ('run/a.png', 'put it there')):
        assert words in describe(FileNotFoundError(2, 'No such file', str(tmp_path / path)))


@pytest.mark.parametrize(
    'error', [ValueError('a'), TypeError(), KeyError('a'), RuntimeError('a'), OSError('no number'), OSError(5, 'I/O')]
)
def test_what_nobody_foresaw_is_none(error):
    assert describe(error) is None


def test_a_sample_is_named_by_its_file_in_worker_processes_too():
    try:
        with naming_sample(Data(), 3):
            raise TypeError('of the second step')
    except SampleError:
        wrapped = ExceptionWrapper(where='in DataLoader worker process 0')
    with pytest.raises(SampleError, match='Original Traceback') as caught:
        wrapped.reraise()
    assert describe(caught.value).startswith(
        '3.png cannot be loaded: TypeError: of the second step (tests/engine/test_'
    )


def test_exit_codes_and_tracebacks(capsys):
    with pytest.raises(SystemExit, match='1'), one_line_errors('a.py'):
        raise UserError('wrong')
    assert capsys.readouterr().err.startswith('error: a.py: wrong (')
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit, match='130'), one_line_errors('a.py'):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == 'a.py: stopped by Ctrl-C\n'
    with pytest.raises(SystemExit, match='130'), one_line_errors('a.py'):
        raise SyntaxError('Failed to format the config file') from KeyboardInterrupt()  # as mmengine does
    signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err == 'a.py: stopped by Ctrl-C\n'
    with pytest.raises(SystemExit, match='1'), one_line_errors('a.py', traceback=True):
        raise UserError('wrong')
    assert capsys.readouterr().err.startswith('Traceback (most recent call last)')
    with pytest.raises(SystemExit, match='1'), one_line_errors('a.py'):
        raise ValueError('unforeseen')
    shown = capsys.readouterr().err
    assert shown.startswith('Traceback (most recent call last)')
    assert 'error: ' not in shown
