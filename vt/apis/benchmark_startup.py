"""Time until work begins, as ``tools/benchmark_startup.py`` asks."""

import argparse
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mmengine
import torch
from rich.progress import track

from vt.analysis.report import print_table
from vt.analysis.run_record import versions
from vt.analysis.speed import describe_device
from vt.engine.config_files import require_file

TRAIN = str(Path(__file__).parents[2] / 'tools' / 'train.py')


def benchmark_startup(args: argparse.Namespace) -> None:
    """Time fresh processes in turn, A B C A B C ...; print medians, and write every run to a file."""
    for config in args.configs:
        require_file(config, 'config')
    steps: dict[str, Callable[[], float]] = {
        'import torch': partial(time_process, '-c', 'import torch'),
        'import vt': partial(time_process, '-c', 'import vt'),
        'tools/train.py --help': partial(time_process, TRAIN, '--help'),
    }
    for config in args.configs:
        steps[f'first iteration of {Path(config).stem}'] = partial(time_first_iteration, config)
    rounds = [{name: step() for name, step in steps.items()} for _ in track(range(args.rounds), 'Starting')]
    results = []
    for name in steps:
        runs = [times[name] for times in rounds]
        results.append(dict(what=name, seconds=statistics.median(runs), runs=runs))
    print_table([{'what': row['what'], 'seconds': f'{row["seconds"]:.2f}'} for row in results], title='Start-up')
    if args.out:
        record = dict(
            command=shlex.join(['python', *sys.argv]),
            device=describe_device(torch.device('cpu')),
            versions=versions(),
            results=results,
        )
        mmengine.dump(record, args.out, indent=2)


def time_process(*arguments: str) -> float:
    """Seconds that Python takes with these arguments, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def time_first_iteration(config: str) -> float:
    """Seconds from the command to the end of the first training iteration; the run is ended then.

    Raises:
        RuntimeError: the run ended before that; the line gives its reason.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile('w+') as errors:
        options = ['--cfg-options', 'default_hooks.logger.interval=1']
        command = [sys.executable, '-u', TRAIN, config, '--work-dir', folder, *options]
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
