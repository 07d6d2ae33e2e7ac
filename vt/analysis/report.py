"""Tables of measured numbers."""

import json
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .benchmark import Benchmark

WIDTH = 160  # wide enough for every table, also where the output is no terminal


def print_table(rows: list[dict[str, str]], title: str) -> None:
    """Print rows that share their columns' names."""
    table = Table(title=title, box=box.SIMPLE_HEAVY, title_justify='left')
    for index, column in enumerate(rows[0]):
        table.add_column(column, justify='right' if index else 'left', no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    Console(width=WIDTH, highlight=False).print(table)


def describe_benchmark(result: Benchmark) -> dict[str, str]:
    """One benchmark as a row, in the units that people read."""
    return {
        'FLOPs (G)': f'{result.flops / 1e9:.3f}',
        'parameters (M)': f'{result.parameters / 1e6:.2f}',
        'latency, median (ms)': f'{result.latency_median * 1e3:.2f}',
        'latency, 95 % (ms)': f'{result.latency_95 * 1e3:.2f}',
        f'images/s at batch {result.batch_size}': f'{result.throughput:.1f}',
        'peak memory (MB)': f'{result.peak_memory / 1e6:.0f}',
    }


def describe_run(work_dir: Path) -> dict[str, str]:
    """A finished run as a row: what ``tools/train.py`` and ``tools/test.py --benchmark`` left of it.

    Raises:
        FileNotFoundError: the run was not trained or not benchmarked.
    """
    training = _read(work_dir / 'training.json', f'train it first: tools/train.py CONFIG --work-dir {work_dir}')
    benchmark = _read(Path(f'{work_dir}.benchmark.json'), 'test it first: tools/test.py CONFIG CHECKPOINT --benchmark')
    return {
        'model': Path(training['config']).stem,
        'top-1 (%)': f'{benchmark["metrics"]["accuracy/top1"]:.2f}',
        'parameters (M)': f'{benchmark["parameters"] / 1e6:.2f}',
        'FLOPs (G)': f'{benchmark["flops"] / 1e9:.4f}',
        'images/s': f'{benchmark["throughput"]:.0f}',
        'training time (s)': f'{training["seconds"]:.0f}',
    }


def _read(path: Path, hint: str) -> dict:
    if not path.exists():
        raise FileNotFoundError(f'there is no {path}; {hint}')
    return json.loads(path.read_text())
