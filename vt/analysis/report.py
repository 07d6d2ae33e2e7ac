"""Tables of measured numbers."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from prettytable import PrettyTable, TableStyle
from rich import box
from rich.console import Console
from rich.table import Table

from vt.checkpoints.files import write_atomically

from .benchmark import Benchmark, Cost

SCORES = {'accuracy/top1': 'top-1', 'mIoU': 'mIoU'}
WIDTH = 180  # wide enough for every table, also where the output is no terminal


def print_table(rows: list[dict[str, str]], title: str, notes: Sequence[str] = ()) -> None:
    """Print rows that share their columns' names, and below them what must be known to read them."""
    table = Table(title=title, box=box.SIMPLE_HEAVY, title_justify='left')
    for index, column in enumerate(rows[0]):
        width = max(len(row[column]) for row in rows)  # headings wrap, cells don't
        table.add_column(column, justify='right' if index else 'left', min_width=width)
    for row in rows:
        table.add_row(*row.values())
    console = Console(width=WIDTH, highlight=False)
    console.print(table)
    for note in notes:
        console.print(f'  {note}')
    if notes:
        console.print()


def to_markdown(rows: list[dict[str, str]]) -> str:
    """The same as a table of Markdown."""
    table = PrettyTable(list(rows[0]), align='r')
    table.align[next(iter(rows[0]))] = 'l'
    table.add_rows([list(row.values()) for row in rows])
    table.set_style(TableStyle.MARKDOWN)
    return table.get_string()


def write_csv(rows: list[dict[str, str]], path: Path) -> None:
    """The same as comma-separated values."""
    text = io.StringIO(newline='')
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def insert(page: Path, name: str, text: str) -> None:
    """Put generated text between the page's lines ``<!-- name -->`` and ``<!-- end of name -->``.

    Raises:
        ValueError: the page lacks one of the two lines.
    """
    begin, end = f'<!-- {name} -->\n', f'<!-- end of {name} -->\n'
    content = page.read_text()
    if begin not in content or end not in content:
        raise ValueError(f'{page} needs the lines {begin.strip()} and {end.strip()} around what is generated')
    head, rest = content.split(begin, 1)
    write_atomically(page, head + begin + text.rstrip() + '\n' + end + rest.split(end, 1)[1])


def describe_benchmark(result: Benchmark) -> list[dict[str, str]]:
    """One benchmark as rows, the whole model and its neck, in the units that people read."""
    rows = [_describe_cost('whole model', result, result.batch_size)]
    return [*rows, _describe_cost('neck alone', result.neck, result.batch_size)] if result.neck else rows


def _describe_cost(part: str, cost: Cost, batch_size: int) -> dict[str, str]:
    return {
        'part': part,
        'FLOPs (G)': f'{cost.flops / 1e9:.3f}',
        'parameters (M)': f'{cost.parameters / 1e6:.2f}',
        'latency, median (ms)': f'{cost.latency_median * 1e3:.2f}',
        'latency, 95 % (ms)': f'{cost.latency_95 * 1e3:.2f}',
        f'images/s at batch {batch_size}': f'{cost.throughput:.1f}',
        'peak memory (MB)': f'{cost.peak_memory / 1e6:.0f}',
    }


def describe_run(work_dir: Path) -> dict[str, str]:
    """A finished run as a row, with its score: what ``tools/train.py`` and ``tools/test.py --benchmark`` left of it.

    Raises:
        FileNotFoundError: the run was not trained or not benchmarked.
    """
    training = _read(work_dir / 'training.json', f'train it first: tools/train.py CONFIG --work-dir {work_dir}')
    benchmark = _read(Path(f'{work_dir}.benchmark.json'), 'test it first: tools/test.py CONFIG CHECKPOINT --benchmark')
    metrics = benchmark['metrics']
    scores = [f'{metrics[key]:.2f} {name}' for key, name in SCORES.items() if key in metrics]
    return {
        'model': Path(training['config']).stem,
        'score (%)': ', '.join(scores),
        'parameters (M)': f'{benchmark["parameters"] / 1e6:.2f}',
        'FLOPs (G)': f'{benchmark["flops"] / 1e9:.4f}',
        'images/s': f'{benchmark["throughput"]:.0f}',
        'training time (s)': f'{training["seconds"]:.0f}',
    }


def _read(path: Path, hint: str) -> dict:
    if not path.exists():
        raise FileNotFoundError(f'there is no {path}; {hint}')
    return json.loads(path.read_text())
