"""Measure the time until the first iteration: ``python -m projects.speed.startup CONFIG [CONFIG ...]``."""

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.config.steps import read_config, require_file
from vt.engine.reporting import one_line_errors
from vt.files import ROOT
from vt.paths import check_output

from .data_loading import write_jpegs
from .timing import median_of_rounds

TRAIN = str(ROOT / 'tools' / 'train.py')


def time_process(*arguments: str) -> float:
    """Seconds that Python takes with these arguments, from its start to its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def time_first_iteration(tool: str, config: str, settings: list[str], iterations: list[float]) -> float:
    """Seconds from calling ``tools/train.py`` to the end of the first training iteration; the run is ended then.

    Args:
        tool, config: paths.
        settings: ``key=value`` each, of the config.
        iterations: gets the seconds of the iteration itself, without waiting for data.

    Raises:
        RuntimeError: the run ended before that; the line gives its reason.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile('w+') as errors:
        options = ['--cfg-options', 'default_hooks.logger.interval=1', *settings]
        command = [sys.executable, '-u', tool, config, '--work-dir', folder, *options]
        start = time.perf_counter()
        # A session of its own, so that it is ended with the processes that load its data.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True)
        try:
            for line in process.stdout:
                if 'Epoch(train)' in line or 'Iter(train)' in line:
                    seconds = time.perf_counter() - start
                    whole, waiting = (float(re.search(rf' {key}: ([\d.]+)', line)[1]) for key in ('time', 'data_time'))
                    iterations.append(whole - waiting)
                    return seconds
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        errors.seek(0)
        raise RuntimeError(f'no iteration began: {(errors.read().splitlines() or ["no reason given"])[-1]}')


def main(args: argparse.Namespace) -> None:
    """Time fresh processes in turn, A B C A B C ...; print medians, and write every run to a file."""
    for config in args.configs:
        require_file(config, 'config')
    check_output(args.out, *args.configs)
    commands = {'import torch': ['-c', 'import torch'], 'import vt': ['-c', 'import vt']}
    commands['tools/train.py --help'] = [TRAIN, '--help']
    steps = {name: partial(time_process, *command) for name, command in commands.items()}
    iterations = {f'first iteration of {Path(config).stem}': [] for config in args.configs}
    with tempfile.TemporaryDirectory() as folder:
        for config, (name, seconds) in zip(args.configs, iterations.items()):
            settings = image_folder(folder, args.synthetic) if args.synthetic and reads_folder(config) else []
            steps[name] = partial(time_first_iteration, TRAIN, config, settings, seconds)
        measured = median_of_rounds(steps, args.rounds, 'Starting')
    results = [dict(what=name, seconds=median, runs=runs) for name, (median, runs) in measured.items()]
    for row in results:
        if seconds := iterations.get(row['what']):
            row['of_these_the_iteration'] = statistics.median(seconds)
    table = [
        {'what': row['what']}
        | {key: f'{row[key]:.2f}' if key in row else '' for key in ('seconds', 'of_these_the_iteration')}
        for row in results
    ]
    print_table(table, 'Start-up')
    write_measured(args.out, results=results)


def reads_folder(config: str) -> bool:
    """Whether a config trains on a folder of images."""
    return read_config(config).train_dataloader.dataset.type == 'CustomDataset'


def image_folder(folder: str, number: int) -> list[str]:
    """Write as many JPEG files of ImageNet's usual size, of two classes; the settings of a config that reads them."""
    for split in ('train', 'val'):
        if not Path(folder, split).exists():
            Path(folder, split).mkdir()
            write_jpegs(Path(folder, split), number)
    return [f'data_root={folder}', 'model.head.num_classes=2']


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure the time of imports, of --help and until the first training iteration, in fresh processes.',
        'python -m projects.speed.startup configs/vt_resnet/vt-resnet18_digits.py',
    )
    parser.add_argument('configs', nargs='*', help='paths of configs to start; their data must be available')
    parser.add_argument(
        '--synthetic', type=int, metavar='N', help='give configs of image folders N generated JPEG files a split'
    )
    parser.add_argument('--rounds', type=int, default=5, help='number of runs (default: 5)')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('startup', args.traceback):
        main(args)
