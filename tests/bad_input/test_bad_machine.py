"""What a machine refuses: rights, space, memory, ports, other processes."""

import os
import signal
import socket
import time

import pytest
from bad_input.small_runs import DIGITS, FOLDER
from forked_tools import ForkedTool, run_forked
from tool_runner import ROOT, assert_one_line

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
    assert_one_line(result, 'no permission for ')


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


def test_ctrl_c(tmp_path):
    (tmp_path / 'config.py').write_text(DIGITS)
    tool = ForkedTool('train.py', 'config.py', cwd=tmp_path, options=['train_cfg.max_epochs=1000'])
    deadline = time.monotonic() + TIMEOUT
    while 'Epoch(train)' not in tool.stdout and time.monotonic() < deadline:
        time.sleep(0.1)
    tool.send_signal(signal.SIGINT)
    result = tool.wait(TIMEOUT)
    tool.send_signal(signal.SIGKILL)  # if it goes on
    assert result.returncode == 130, result.stderr
    assert 'Traceback' not in result.stderr
    assert 'rror' not in result.stderr
