"""Train again what stands on the pages: the runs of ``docs/reports/runs``, one file a page, by ``tools/sweep.py``.

A table has ``rows``, the ``seeds`` and ``options`` that they share, and ``then``, commands that measure its models. A
row is its config with options of its own, or ``run``, the same, with ``seeds`` of its own; ``{seed}`` is replaced.
"""

import argparse
import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from vt.analysis.scores import label_run
from vt.commands.sweep import SweepRun, identify, train_all
from vt.errors import UserError

from .markdown import RECORDS, ROOT
from .records import write_recorded

PAGES = (
    'models',
    'training',
    'survey',
    'mvit',
    'benchmark',
)  # later ones begin from weights of earlier ones
RUNS = Path(__file__).with_name('runs')
Tables = dict[str, dict[str, Any]]
FOLDER = Path('work_dirs/reproduce')  # of all runs, TABLE/ROW_seed-SEED
# glibc keeps its memory instead of asking for it in every step; runs beside each other have one thread each.
TUNABLES = 'glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592:glibc.malloc.hugetlb=1'


@cache
def read_tables() -> Tables:
    """Every table, in the order of the files and in theirs."""
    files = [yaml.safe_load((RUNS / f'{page}.yml').read_text()) for page in PAGES]
    return {name: table for file in files for name, table in file.items()}


def read_runs(name: str, tables: Tables) -> list[SweepRun]:
    """The runs of a table in the order of its rows, and of the seeds of each.

    Raises:
        UserError: there is no such table.
    """
    if name not in tables:
        raise UserError(f'there is no table {name}; there are: {", ".join(tables)}')
    table = tables[name]
    runs = []
    for label, row in table['rows'].items():
        row = row if isinstance(row, dict) else dict(run=row)
        config, *options = f'{row["run"]} {table.get("options", "")}'.split()
        for seed in row.get('seeds', table['seeds']):
            settings = tuple(option.replace('{seed}', str(seed)) for option in options)
            runs.append(SweepRun(config, settings, label, seed, FOLDER / name / f'{label}_seed-{seed}'))
    return runs


def train(args: argparse.Namespace, tables: Tables, records: Path = RECORDS) -> None:
    """Train tables, write their records, and measure what the pages show of their models.

    Args:
        args: names of tables, all by default, and how many run at a time.
        tables: all that there are.
        records: the folder for them.

    Raises:
        UserError: there is no such table, before anything is trained; or runs that failed.
    """
    os.chdir(ROOT)
    os.environ |= dict(OMP_NUM_THREADS='1', GLIBC_TUNABLES=TUNABLES)
    planned = {name: read_runs(name, tables) for name in args.tables or tables}
    for name, runs in planned.items():
        by_seed = sorted(runs, key=lambda run: run.seed)  # so that a stop leaves all rows of fewer seeds
        train_all(identify(by_seed, FOLDER / name), FOLDER / name, args.jobs)
        for best in (FOLDER / name).glob('*/best_*.pth'):
            best.unlink()
        write_recorded(records / f'{name}.json', [label_run(run.work_dir) for run in runs])
        for command in tables[name].get('then', ()):
            subprocess.run([sys.executable, *shlex.split(command)], check=True)
