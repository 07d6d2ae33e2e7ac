"""Measure bfloat16 beside float32 on a CPU: ``python -m projects.speed.bfloat16 NAME ... --out FOLDER``."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from docs.reports.records import write_measured
from vt.analysis.speed import Step, time_interleaved
from vt.analysis.tables import print_table
from vt.apis import find_config
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.engine.run.speed_settings import keep_freed_memory, use_threads

from .settings import KINDS, Setting
from .subject import Subject
from .workload import Workload

WAYS = {
    'blas': dict(dtype='float32', token_products='blas'),
    'onednn': dict(dtype='float32', token_products='onednn'),
    'bfloat16': dict(dtype='bfloat16', token_products='blas'),  # autocast products are oneDNN's in PyTorch
}


def time_model(name: str, batch_size: int, seconds: float) -> list[dict[str, Any]]:
    """Steps of a model in turn: float32 with linear layers by the BLAS, the same by oneDNN, and bfloat16.

    Args:
        name: name of a config.
        batch_size: images of 224x224 per step.
        seconds: time limit for inference and for training each, about.

    Returns:
        A row for each kind: ``kind``, and the seconds of each step by the names of ``WAYS``.
    """
    plain = Setting(batch_size=batch_size)
    workloads = {
        way: Workload(Subject(str(find_config(name))).build(setting), 'whole', setting)
        for way, options in WAYS.items()
        for setting in [replace(plain, **options)]
    }
    rows = []
    for kind in KINDS:
        steps = {way: _chosen(workload, kind) for way, workload in workloads.items()}
        times = time_interleaved(steps, torch.device('cpu'), f'{name}, {kind}', 30, 2, seconds)
        rows.append(dict(kind=kind) | {way: found.tolist() for way, found in times.items()})
    return rows


def _chosen(workload: Workload, kind: str) -> Step:
    """A step of a workload after the library of its products is chosen."""
    step = workload.step(kind)

    def run() -> None:
        workload.setting.choose_products()
        step()

    return run


def main(args: argparse.Namespace) -> None:
    """Measure each model; print medians and ratios, and write a file per model."""
    threads = use_threads()
    keep_freed_memory()
    for name in args.names:
        rows = time_model(name, args.batch_size, args.seconds)
        found = torch.tensor([[torch.tensor(row[way]).median() for way in WAYS] for row in rows])
        print_table(
            [
                {'kind': row['kind']} | {f'{way} (ms)': f'{1e3 * each:.4g}' for way, each in zip(WAYS, medians)}
                for row, medians in zip(rows, found.tolist())
            ],
            f'{name}, {args.batch_size} images',
        )
        out = args.out and Path(args.out, f'{name.split("_")[0]}_cpu.json')
        write_measured(out, name=name, batch_size=args.batch_size, threads=threads, rows=rows)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure inference and training in bfloat16 and in float32, by each library, in turn.',
        'python -m projects.speed.bfloat16 swin-tiny_16xb64-300e_in1k --seconds 20',
    )
    parser.add_argument('names', nargs='+', metavar='NAME', help='names of models')
    parser.add_argument('--batch-size', type=int, default=8, help='images per step (default: 8)')
    parser.add_argument('--seconds', type=float, default=60, help='time limit per model and kind, about (default: 60)')
    parser.add_argument('--out', help='folder for a JSON file of the measurements of each model')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('bfloat16', args.traceback):
        main(args)
