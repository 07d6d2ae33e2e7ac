"""A run that is killed at any moment and resumed ends as one that was left alone, bit for bit."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from forked_tools import ForkedTool, run_forked
from run_comparison import assert_same_end

HERE = Path(__file__).parent
KILLS = 10  # of each kind of run; the first every time
ARGUMENTS = ['--amp', '--skip-data-check', '--work-dir']


@pytest.fixture(scope='module', params=[pytest.param('epochs', marks=pytest.mark.gpu), 'iterations'])
def uninterrupted(request, tmp_path_factory):
    """A config, the work directory of a run that was left alone, and how long it took."""
    config = HERE / f'{request.param}.py'
    folder = tmp_path_factory.mktemp('left alone')
    run_forked('train.py', '--help', cwd=folder)  # the first fork waits until all is imported
    begin = time.monotonic()
    result = run_forked('train.py', config, *ARGUMENTS, folder / 'run', cwd=folder)
    assert result.returncode == 0, result.stderr
    return config, folder / 'run', time.monotonic() - begin


@pytest.mark.parametrize('kill', [0, *(pytest.param(kill, marks=pytest.mark.slow) for kill in range(1, KILLS))])
def test_killed_and_resumed(kill, uninterrupted, tmp_path):
    config, expected, seconds = uninterrupted
    kill_run(config, random.Random(f'{config.stem} {kill}').uniform(0, seconds), tmp_path)
    result = run_forked('train.py', config, *ARGUMENTS, 'run', '--resume', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_same_end(tmp_path / 'run', expected)


def kill_run(config, moment, folder):
    """Kill a run some seconds after its start; sooner where it has ended by then."""
    while True:
        run = ForkedTool('train.py', config, *ARGUMENTS, 'run', cwd=folder)
        time.sleep(moment)
        run.send_signal(signal.SIGKILL)
        result = run.wait()
        if result.returncode == -signal.SIGKILL:
            return
        assert result.returncode == 0, result.stderr
        shutil.rmtree(folder / 'run')
        moment *= 0.7
