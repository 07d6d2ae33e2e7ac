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
KILLS = 10  # of each kind of run; the first two every time
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


@pytest.fixture(scope='module')
def earlier(uninterrupted, tmp_path_factory):
    """The work directory of another finished run, with another seed."""
    folder = tmp_path_factory.mktemp('earlier')
    result = run_forked('train.py', uninterrupted[0], *ARGUMENTS, 'run', cwd=folder, options=['randomness.seed=7'])
    assert result.returncode == 0, result.stderr
    return folder / 'run'


kills = pytest.mark.parametrize('kill', [0, *(pytest.param(kill, marks=pytest.mark.slow) for kill in range(1, KILLS))])


@kills
def test_killed_and_resumed(kill, uninterrupted, tmp_path):
    config, expected, seconds = uninterrupted
    kill_run(config, random.Random(f'{config.stem} {kill}').uniform(0, seconds), tmp_path)
    result = run_forked('train.py', config, *ARGUMENTS, 'run', '--resume', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_same_end(tmp_path / 'run', expected)


@kills
def test_second_run_of_a_folder_killed_and_resumed(kill, uninterrupted, earlier, tmp_path):
    """At any moment after it has taken the folder over; it never goes on from the run before."""
    config, expected, seconds = uninterrupted
    shutil.copytree(earlier, tmp_path / 'used')
    shutil.copytree(tmp_path / 'used', tmp_path / 'run')
    kill_run(config, random.Random(f'second {config.stem} {kill}').uniform(0, seconds), tmp_path)
    result = run_forked('train.py', config, *ARGUMENTS, 'run', '--resume', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_same_end(tmp_path / 'run', expected)
    (aside,) = (tmp_path / 'run').glob('earlier_run_*')
    assert_same_end(aside, earlier)


def kill_run(config, moment, folder):
    """Kill a run some seconds after it has the folder; sooner where it has ended by then."""
    is_used = (folder / 'used').exists()
    while True:
        run = ForkedTool('train.py', config, *ARGUMENTS, 'run', cwd=folder)
        while is_used and run.process.is_alive() and not [*folder.glob('run/to_set_*'), *folder.glob('run/earlier_*')]:
            time.sleep(0.001)
        time.sleep(moment)
        run.send_signal(signal.SIGKILL)
        result = run.wait()
        if result.returncode == -signal.SIGKILL:
            return
        assert result.returncode == 0, result.stderr
        shutil.rmtree(folder / 'run')
        if is_used:
            shutil.copytree(folder / 'used', folder / 'run')
        moment *= 0.7
