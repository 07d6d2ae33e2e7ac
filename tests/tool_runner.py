"""Call a command line of ``tools/`` as a user does."""

import subprocess
import sys
from pathlib import Path

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


def assert_one_line(result, message):
    """The command failed with one line that holds ``message``."""
    assert result.returncode == 1
    errors = [line for line in result.stderr.splitlines() if line.startswith('error: ')]
    assert len(errors) == 1, result.stderr
    assert message in errors[0]
    assert 'Traceback' not in result.stderr
