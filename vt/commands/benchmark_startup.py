"""Time until work begins, as ``tools/benchmark_startup.py`` asks."""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.progress import track

from vt.analysis.run_record import describe_origin
from vt.analysis.speed.startup import time_first_iteration, time_process
from vt.analysis.tables import print_table
from vt.engine.config_files import require_file

from .outputs import check_output, write_json

TRAIN = str(Path(__file__).parents[2] / 'tools' / 'train.py')


def benchmark_startup(args: argparse.Namespace) -> None:
    """Time fresh processes in turn, A B C A B C ...; print medians, and write every run to a file."""
    for config in args.configs:
        require_file(config, 'config')
    check_output(args.out, *args.configs)
    steps: dict[str, Callable[[], float]] = {
        'import torch': partial(time_process, '-c', 'import torch'),
        'import vt': partial(time_process, '-c', 'import vt'),
        'tools/train.py --help': partial(time_process, TRAIN, '--help'),
    }
    for config in args.configs:
        steps[f'first iteration of {Path(config).stem}'] = partial(time_first_iteration, TRAIN, config)
    rounds = [{name: step() for name, step in steps.items()} for _ in track(range(args.rounds), 'Starting')]
    results = []
    for name in steps:
        runs = [times[name] for times in rounds]
        results.append(dict(what=name, seconds=statistics.median(runs), runs=runs))
    print_table([{'what': row['what'], 'seconds': f'{row["seconds"]:.2f}'} for row in results], title='Start-up')
    if args.out:
        write_json(dict(**describe_origin(), results=results), args.out)
