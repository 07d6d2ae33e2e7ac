"""Call a command line of ``tools/`` as a user does."""

import io
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from mmengine.logging import MessageHub, MMLogger
from mmengine.registry import DefaultScope
from mmengine.visualization import Visualizer

ROOT = Path(__file__).parents[1]
# Options that make a VT-ResNet on the digits small, and its data few.
SMALL_CLASSIFIER = [
    'train_dataloader.dataset.indices=64',
    'val_dataloader.dataset.indices=32',
    'test_dataloader.dataset.indices=32',
    'model.backbone.num_tokens=4',
    'model.backbone.token_channels=64',
    'model.head.in_channels=64',
]


def run(tool, *arguments, cwd, options=(), env=None):
    """Run ``tools/<tool>`` with arguments and ``--cfg-options``."""
    command = [sys.executable, ROOT / 'tools' / tool, *arguments]
    if options:
        command += ['--cfg-options', *options]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=env)


def call(tool, *arguments, cwd, options=()):
    """As :func:`run`, in this process: for all that needs no process of its own."""
    arguments = [str(argument) for argument in arguments]
    if options:
        arguments += ['--cfg-options', *options]
    for kind in (MMLogger, MessageHub, Visualizer, *Visualizer.__subclasses__()):  # those of earlier runs
        kind._instance_dict.clear()
    out, errors, code = io.StringIO(), io.StringIO(), 0
    scope = DefaultScope.overwrite_default_scope('mmpretrain')  # forgets that of the run, whose name the next may have
    with scope, pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.chdir(cwd)
        patch.setattr(sys, 'argv', [str(ROOT / 'tools' / tool), *arguments])
        try:
            runpy.run_path(str(ROOT / 'tools' / tool), run_name='__main__')
        except SystemExit as end:
            code = end.code or 0
    return subprocess.CompletedProcess(tool, code, out.getvalue(), errors.getvalue())


def succeed(result):
    """The result of a command that succeeded."""
    assert result.returncode == 0, result.stderr
    return result


def assert_one_line(result, message):
    """The command failed with one line that holds ``message``."""
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith('error: ')]
    assert len(errors) == 1, result.stderr
    assert message in errors[0]
    assert 'Traceback' not in result.stderr
