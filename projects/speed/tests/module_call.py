"""Call a module of this project as a user does."""

import os
import subprocess
import sys

from tool_runner import ROOT


def call(module, *arguments, cwd, env=None):
    """Run ``python -m projects.speed.MODULE`` with arguments."""
    command = [sys.executable, '-m', f'projects.speed.{module}', *map(str, arguments)]
    environment = os.environ | dict(PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / 'tests')])) | (env or {})
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
