"""What a machine refuses: rights, space, memory, ports, other processes."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from bad_input.small_runs import DIGITS, FOLDER
from forked_tools import ForkedTool, run_forked
from tool_runner import ROOT, assert_one_line, run, succeed

LIMITED = ROOT / 'tests/bad_input/limited_tool.py'
TIMEOUT = 120  # seconds, against a hang


def test_a_run_that_fails_does_not_wait_for_its_workers(tmp_path):
    config = f"{DIGITS}custom_imports = dict(imports=['vt', 'bad_input.steps'])\n"
    config += "custom_hooks = [dict(type='StartAndFail')]\n"
    (tmp_path / 'config.py').write_text(config)
    tool = ForkedTool('train.py', 'config.py', cwd=tmp_path)
    result = tool.wait(TIMEOUT)
    tool.send_signal(signal.SIGKILL)  # if it hangs
    assert_one_line(result, 'this is the end')


@pytest.mark.parametrize(('path', 'mode'), [('data/images/dog/0.png', 0), ('out', 0o555)])
def test_no_rights(path, mode, folder):
    (folder / 'out').mkdir()
    (folder / 'config.py').write_text(FOLDER)
    arguments = ['config.py', *(['--work-dir', 'out/new'] if path == 'out' else [])]
    (folder / path).chmod(mode)
    try:
        result = run_forked(LIMITED, 'rights', ROOT / 'tools/train.py', *arguments, cwd=folder)
    finally:
        (folder / path).chmod(0o755)
    assert_one_line(result, 'permission denied for ')


def test_a_port_in_use(tmp_path):
    with socket.socket() as taken:
        taken.bind(('0.0.0.0', 0))
        taken.listen()
        port = taken.getsockname()[1]
        place = dict(RANK='0', LOCAL_RANK='0', WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
        env = dict(os.environ, CUDA_VISIBLE_DEVICES='', **place)
        (tmp_path / 'config.py').write_text(DIGITS)
        result = run_forked('train.py', 'config.py', cwd=tmp_path, env=env)
    assert_one_line(result, f'error: rank 0: config.py: could not connect to the other processes at 127.0.0.1:{port} (')


def press_ctrl_c(tool):
    """As a terminal does, which signals workers, too."""
    workers = Path(f'/proc/{tool.process.pid}/task/{tool.process.pid}/children').read_text().split()
    for number in (tool.process.pid, *map(int, workers)):
        os.kill(number, signal.SIGINT)


def wait_until(condition):
    deadline = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def assert_ended_by_ctrl_c(tool, line):
    """Also without a traceback of a worker."""
    result = tool.wait(TIMEOUT)
    tool.send_signal(signal.SIGKILL)  # if it goes on
    assert result.returncode == 130, result.stderr
    assert line in (result.stdout + result.stderr).splitlines()[-1]
    assert 'Traceback' not in result.stderr
    assert 'rror' not in result.stderr


def test_ctrl_c_saves_and_says_how_to_continue(tmp_path):
    (tmp_path / 'config.py').write_text(DIGITS)
    options = ['train_cfg.max_epochs=1000', 'train_dataloader.num_workers=2']
    tool = ForkedTool('train.py', 'config.py', cwd=tmp_path, options=options)
    wait_until(lambda: 'Epoch(train)' in tool.stdout)
    press_ctrl_c(tool)
    command = f'python {shlex.quote(f"{ROOT}/tools/train.py")} config.py --cfg-options {" ".join(options)} --resume'
    assert_ended_by_ctrl_c(tool, 'Ctrl-C: saving after this iteration, or validation')
    (line,) = (line for line in tool.stdout.splitlines() if 'Stopped by SIGINT' in line)
    assert line.endswith(f'Continue with {command}')
    (saved,) = tmp_path.glob('work_dirs/config/interrupted_iter_*.pth')
    assert f'; saved {saved}. ' in line


@pytest.mark.parametrize(
    ('loader', 'arguments', 'line'),
    [('train', [], 'config.py: stopped by Ctrl-C'), ('val', ['--skip-data-check'], 'Ctrl-C: saving after this')],
    ids=['in the dry run', 'twice in a validation'],
)
def test_ctrl_c_that_ends_at_once(loader, arguments, line, folder):
    config = f"""{FOLDER}
custom_imports = dict(imports=['vt', 'bad_input.steps'])
waiting = dict(dataset, pipeline=[pipeline[0], dict(type='Wait', at='dog/0.png'), *pipeline[1:]])
{loader}_dataloader = dict(batch_size=4, num_workers=1, dataset=waiting)
"""
    (folder / 'config.py').write_text(config)
    tool = ForkedTool('train.py', 'config.py', *arguments, cwd=folder)
    wait_until((folder / 'waits').exists)
    press_ctrl_c(tool)
    if loader == 'val':
        wait_until(lambda: 'Ctrl-C' in tool.stderr)
        press_ctrl_c(tool)
    assert_ended_by_ctrl_c(tool, line)
    saved = ['epoch_1.pth'] if loader == 'val' else []
    assert [path.name for path in folder.glob('work_dirs/config/*.pth')] == saved


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can take on the number of a user without a name')
def test_a_user_without_a_name_and_a_home(tmp_path):
    (tmp_path / 'config.py').write_text(DIGITS)
    env = dict(os.environ, PYTHONPATH=f'{ROOT}:{ROOT}/tests')
    env.pop('HOME', None)
    succeed(run(LIMITED, 'name', ROOT / 'tools/print_config.py', 'config.py', cwd=tmp_path, env=env))


def test_a_long_path_of_temporary_files(folder):
    """Workers send images by sockets, whose paths are short."""
    (folder / 'config.py').write_text(FOLDER)
    long = folder / 'scratch' / ('x' * 100)
    long.mkdir(parents=True)
    env, options = dict(os.environ, TMPDIR=str(long)), ['train_dataloader.num_workers=1']
    tool = ForkedTool('train.py', 'config.py', '--skip-data-check', cwd=folder, env=env, options=options)
    result = tool.wait(TIMEOUT)
    tool.send_signal(signal.SIGKILL)  # if it hangs
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(shutil.which('gcc') is None, reason='needs a compiler')
def test_a_library_that_the_system_lacks(tmp_path):
    """OpenCV in a slim image: its module needs a library that was there when it was linked."""
    (tmp_path / 'cv2.c').write_text('int draw(void); int use(void) { return draw(); }')
    (tmp_path / 'draw.c').write_text('int draw(void) { return 1; }')
    build = ['gcc', '-shared', '-fPIC']
    subprocess.run([*build, 'draw.c', '-o', 'libdraw.so', '-Wl,-soname,libdraw.so.1'], cwd=tmp_path, check=True)
    subprocess.run([*build, 'cv2.c', './libdraw.so', '-o', 'cv2.so'], cwd=tmp_path, check=True)
    env = dict(os.environ, PYTHONPATH=f'{tmp_path}:{ROOT}')
    result = run('test.py', 'config.py', 'a.pth', cwd=tmp_path, env=env)
    assert_one_line(
        result,
        'the system library libdraw.so.1 is missing: install the package that contains it (for OpenCV: apt-get install',
    )
