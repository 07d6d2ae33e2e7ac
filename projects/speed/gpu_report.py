"""Measure VT on a GPU, in at most 460 seconds: ``python -m projects.speed.gpu_report FOLDER``."""

import argparse
import json
import os
import pkgutil
import time
from functools import partial
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from vt._libraries import importing
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.errors import UserError

# Seconds of each part. What one leaves over is for the next ones; the first includes the import of the libraries.
PARTS = dict(environment=16, ceilings=4, launch=20, segmentors=40, necks=72, resnets=62, paths=34, graphs=14)
PARTS |= dict(survey=52, end_to_end=75, losses=36, fsdp=25)
FILE = 'measured.jsonl'
GRACE = 30  # seconds for a row that has begun, such as a compilation; then its process is killed

Row = dict[str, Any]


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure VT on a GPU: necks, segmentors, classifiers, operations, the survey, training runs, torch.compile.',
        'python -m projects.speed.gpu_report projects/speed/measured/my-card',
    )
    parser.add_argument('folder', type=Path, help=f'folder for {FILE} and log.txt')
    parser.add_argument('--seconds', type=float, default=460, help='time limit (default: 460)')
    parser.add_argument('--dry', action='store_true', help='test run on the CPU, in the smallest sizes')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


def add_line(folder: Path, row: Row) -> None:
    """Add a row to the file in a folder."""
    with (folder / FILE).open('a') as file:
        file.write(json.dumps(row) + '\n')


def read_lines(folder: Path) -> list[Row]:
    """Read the rows of a folder."""
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()]


def gpu_report(
    folder: Path, seconds: float, dry: bool, parts: dict[str, float] = PARTS, module: str = 'projects.speed.gpu_parts'
) -> None:
    """Measure part after part in a process; if it breaks or hangs, another one begins with the next part.

    A dry run has the smallest sizes on the CPU and only a limit for the whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (FILE, 'log.txt'):
        (folder / name).write_text('')
    begin, context, names = time.monotonic(), get_context('spawn'), [*parts]
    limit = begin + seconds - 5  # this process has imported PyTorch before
    ends = [limit - 5 if dry else min(begin + end, limit - 5) for end in accumulate(parts.values())]
    kills = [*(min(end + GRACE, limit) for end in ends), limit]
    current = context.Value('i', 0)
    while current.value < len(parts):
        if time.monotonic() < ends[current.value]:
            worker = context.Process(target=_measure, args=(current, names, ends, folder, dry, module), daemon=True)
            worker.start()
            while worker.is_alive() and time.monotonic() < kills[current.value]:
                worker.join(0.1)
            worker.kill()
            missing = dict(error='the process that measured it ended or took too long, and its last row is missing')
        else:
            missing = dict(skipped='no time was left')
        if current.value < len(parts):
            add_line(folder, dict(part=names[current.value]) | missing)
            current.value += 1
    add_line(folder, dict(part='report', dry=dry, limit=seconds, seconds=round(time.monotonic() - begin, 1)))
    if failed := {line['part']: None for line in read_lines(folder) if 'error' in line}:
        raise UserError(f'there are errors in {", ".join(failed)}: see {folder / "log.txt"}')


def _measure(current: Any, names: list[str], ends: list[float], folder: Path, dry: bool, module: str) -> None:
    with importing():
        from .gpu_rows import Rows
    torch.backends.cudnn.benchmark = True  # as in runs
    if dry:
        torch.compile = partial(torch.compile, backend='aot_eager')  # code for a CPU takes minutes
    device = torch.device('cpu' if dry else 'cuda')
    while current.value < len(names):
        name = names[current.value]
        pkgutil.resolve_name(f'{module}:{name}')(Rows(name, ends[current.value], device, dry, folder))
        current.value += 1


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('gpu_report', args.traceback):
        if args.dry:
            os.environ['CUDA_VISIBLE_DEVICES'] = ''
        elif not torch.cuda.is_available():
            raise UserError('there is no GPU that PyTorch can use; --dry measures in the smallest sizes on the CPU')
        gpu_report(args.folder, args.seconds, args.dry)
