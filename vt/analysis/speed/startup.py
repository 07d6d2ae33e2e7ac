"""Time until work begins, in fresh processes."""

import os
import signal
import subprocess
import sys
import tempfile
import time


def time_process(*arguments: str) -> float:
    """Seconds that Python takes with these arguments, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def time_first_iteration(tool: str, config: str) -> float:
    """Seconds from calling ``tools/train.py`` to the end of the first training iteration; the run is ended then.

    Raises:
        RuntimeError: the run ended before that; the line gives its reason.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile('w+') as errors:
        options = ['--cfg-options', 'default_hooks.logger.interval=1']
        command = [sys.executable, '-u', tool, config, '--work-dir', folder, *options]
        start = time.perf_counter()
        # A session of its own, so that it is ended with the processes that load its data.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        try:
            for line in process.stdout:
                if 'Epoch(train)' in line or 'Iter(train)' in line:
                    return time.perf_counter() - start
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        errors.seek(0)
        raise RuntimeError(f'no iteration began: {(errors.read().splitlines() or ["no reason given"])[-1]}')
