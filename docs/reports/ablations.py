"""Finished runs laid beside the paper's tables 2 to 7 and 9, each against the model itself: rows, and a picture."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vt.analysis.ablation.run_scores import Change, Scores, compare, read_records, summarize
from vt.analysis.speed.measurement import KINDS, read_record
from vt.errors import UserError

from .markdown import BENCHMARKS, RECORDS, Rows, insert, table
from .paper import ABLATIONS, load_tables

TABLES = ('twin-digits-10e', 'twin-digits', 'digits-half', 'relational-scenes')  # of docs/records
VARIANTS = {name for each in ABLATIONS.values() for name in each.variants.values() if name}

TITLES = {2: 'VT-ResNet against its ResNet', 9: 'VT-FPN against FPN'}
TITLES |= {number: ablation.title for number, ablation in ABLATIONS.items()}
Speeds = dict[str, dict[str, float]]


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper: its score in percent, million multiply-adds and million parameters (None: not given)."""

    score: float
    mflops: float
    mparams: float | None


@dataclass(frozen=True)
class Comparison:
    """One row of a table of the paper's: a variant against the model itself, ours and the paper's.

    The changes, ours and the paper's score in points, are None for the model itself.
    """

    table: int
    label: str
    scores: Scores
    change: Change | None
    paper: PaperRow
    paper_change: float | None


ComparedTasks = dict[str, dict[int, list[Comparison]]]  # by task and by the paper's number of the table


def gather(records: Iterable[dict]) -> dict[str, list[Scores]]:
    """Scores of each task's configs.

    Raises:
        UserError: runs of a config differ in more than their seeds.
    """
    by_config = defaultdict(list)
    for record in records:
        by_config[Path(record['config']).stem, record['length']].append(record)
    tasks = defaultdict(list)
    for (stem, length), runs in by_config.items():
        if any(run['options'] != runs[0]['options'] for run in runs):
            raise UserError(f'{stem}, {length}: the runs differ in their --cfg-options; give those of one setting')
        scores = _summarize(stem, length, runs)
        tasks[scores.task].append(scores)
    return dict(tasks)


def _summarize(stem: str, length: str, runs: list[dict]) -> Scores:
    model, *rest = stem.split('_')
    variant = next((part for part in rest if part in VARIANTS), None)
    return summarize(runs, model, variant, '_'.join(part for part in rest if part != variant), length)


def compare_with_paper(task: list[Scores]) -> dict[int, list[Comparison]]:
    """All of the paper's tables that the configs of a task have at least two rows of."""
    model = 'VT-R34' if any('resnet34' in scores.model for scores in task) else 'VT-R18'
    tables = [_compare_twins(task, model)]
    for number, ablation in ABLATIONS.items():
        papers = {row['value']: row for row in ablation.rows(model)}
        rows = [
            (f'{ablation.column}: {value}', name, _paper_row(row))
            for value, name in ablation.variants.items()
            if (row := papers.get(value))
        ]
        ours = {scores.variant: scores for scores in task if re.fullmatch(r'vt-resnet\d+(-half)?', scores.model)}
        tables.append(_compare(number, task, ours, rows, reference=None))
    return {rows[0].table: rows for rows in tables if len(rows) > 1}


def _compare_twins(task: list[Scores], model: str) -> list[Comparison]:
    """Table 2 or 9: a model and the one that it replaces."""
    if task[0].metric == 'mIoU':
        number, table, names = 9, 'table9_coco_stuff_800x1216', ('R-50 FPN', 'R-50 VT-FPN')
    else:
        number, table, names = 2, 'table2_default_recipe', (model.removeprefix('VT-'), model)
    papers = {row['model']: row for row in load_tables()[table]}
    plain = {scores.model: scores for scores in task if scores.variant is None}
    for name in plain:
        if f'vt-{name}' in plain:
            ours = (name, f'vt-{name}')
            rows = [(own, own, _paper_row(papers[paper])) for own, paper in zip(ours, names)]
            return _compare(number, task, plain, rows, reference=f'vt-{name}')
    return []


def _paper_row(row: dict) -> PaperRow:
    if 'miou' in row:
        return PaperRow(row['miou'], 1000 * row['gflops_total'], None)
    return PaperRow(row.get('top1', row.get('top1_val')), row['mflops'], row['mparams'])


def _compare(
    number: int,
    task: list[Scores],
    ours: dict[str | None, Scores],
    rows: list[tuple[str, str | None, PaperRow]],
    reference: str | None,
) -> list[Comparison]:
    """Rows of label, key in ``ours`` and the paper's row, each against the row whose key is ``reference``."""
    if reference not in ours:
        return []
    papers = {key: paper for _, key, paper in rows}
    comparisons = []
    for label, key, paper in rows:
        if key == reference:
            comparisons.append(Comparison(number, label, ours[key], None, paper, None))
        elif key in ours:
            change = compare(ours[key], ours[reference], task)
            paper_change = paper.score - papers[reference].score
            comparisons.append(Comparison(number, label, ours[key], change, paper, paper_change))
    return comparisons


def read_speeds(paths: Iterable[Path]) -> Speeds:
    """Median seconds of whole models by config and kind, from what ``tools/benchmark.py --out`` wrote."""
    speeds: Speeds = {}
    for path in paths:
        for measurement in read_record(path).results:
            if measurement.part == 'whole':
                speeds.setdefault(measurement.model, {})[measurement.kind] = measurement.median
    return speeds


def describe(rows: list[Comparison], speeds: Speeds) -> Rows:
    """One of the paper's tables as rows: ours, then the paper's.

    Args:
        rows: the comparisons of a table; one of them is the model itself.
        speeds: see :func:`read_speeds`; may lack configs.
    """
    (reference,) = [row for row in rows if row.change is None]
    metric = reference.scores.metric
    return [
        {
            'variant': row.label,
            f'{metric} (%), seeds': f'{row.scores.mean:.2f}{_with_sign(row.scores.spread)} ({len(row.scores.seeds)})',
            'change (95 %)': f'{row.change.points:+.2f}{_with_sign(row.change.margin)}' if row.change else '',
            'verdict': row.change.verdict if row.change else '',
            'MFLOPs': f'{row.scores.flops / 1e6:.1f}',
            'M params': f'{row.scores.parameters / 1e6:.2f}',
            'speed, inference / training': _describe_speed(row.scores, reference.scores, speeds),
            f"paper's {metric}": f'{row.paper.score}',
            'change': '' if row.paper_change is None else f'{row.paper_change:+.1f}',
            "paper's MFLOPs": f'{row.paper.mflops}',
            "paper's M params": '' if row.paper.mparams is None else f'{row.paper.mparams}',
        }
        for row in rows
    ]


def _with_sign(margin: float) -> str:
    return '' if np.isnan(margin) else f' ± {margin:.2f}'


def _describe_speed(scores: Scores, reference: Scores, speeds: Speeds) -> str:
    """How many times the speed of the model itself."""
    if scores.config not in speeds or reference.config not in speeds:
        return ''
    return ' / '.join(f'{speeds[reference.config][kind] / speeds[scores.config][kind]:.2f}x' for kind in KINDS)


def tabulate(tasks: ComparedTasks, speeds: Iterable[Path]) -> dict[str, dict[str, Rows]]:
    """Rows of the compared tables by task and by their titles; speeds as of :func:`read_speeds`."""
    measured = read_speeds(speeds)
    return {
        task: {f'Table {n} on {task}: {TITLES[n]}': describe(rows, measured) for n, rows in tables.items()}
        for task, tables in tasks.items()
    }


def compare_all(records: Iterable[dict]) -> ComparedTasks:
    """The paper's tables that these runs have rows of, by task and number.

    Raises:
        UserError: no two runs belong to one of them.
    """
    tasks = {name: compare_with_paper(scores) for name, scores in gather(records).items()}
    if not any(tasks.values()):
        raise UserError('no two of these runs stand in one table of the paper; give a model and a variant of it')
    return {name: tables for name, tables in tasks.items() if tables}


def to_markdown(tables: dict[str, Rows]) -> str:
    """The tables of a task, each below its title."""
    return '\n\n'.join(f'**{title}**\n\n{table(rows)}' for title, rows in tables.items()) + '\n'


def to_csv(tasks: dict[str, dict[str, Rows]]) -> str:
    """All rows, with their task and table; the score's column does not name its metric, which they then share."""
    rows = [
        {'task': task, 'table': re.search(r'\d+', title)[0]}
        | {re.sub('top-1|mIoU', 'score', name): cell for name, cell in row.items()}
        for task, tables in tasks.items()
        for title, found in tables.items()
        for row in found
    ]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator='\r\n')


def read_compared() -> ComparedTasks:
    """The comparisons of the recorded runs."""
    return compare_all(read_records([RECORDS / f'{name}.json' for name in TABLES]))


def render(page: str) -> dict[str, str]:
    """The page with its tables, and the files beside it that hold them alone."""
    tasks = tabulate(read_compared(), [BENCHMARKS / f'{name}_cpu.json' for name in ('ablations', 'scenes')])
    texts = {task: to_markdown(tables) for task, tables in tasks.items()}
    for task, text in texts.items():
        page = insert(page, f'ablation {task}', text)
    return {
        'docs/ablations.md': page,
        'docs/ablations/tables.md': '\n\n'.join(texts.values()) + '\n',
        'docs/ablations/tables.csv': to_csv(tasks),
    }


def draw(tasks: ComparedTasks) -> Figure:
    """Every change against the model itself, with its interval and the paper's beside it; a panel a task."""
    figure = Figure(figsize=(6.5 * len(tasks), 5), layout='constrained')
    panels = figure.subplots(1, len(tasks), squeeze=False)
    for axes, (task, tables) in zip(panels[0], tasks.items()):
        _draw_task(axes, task, [row for rows in tables.values() for row in rows if row.change])
    return figure


def _draw_task(axes: Axes, task: str, rows: list[Comparison]) -> None:
    places = np.arange(len(rows))[::-1]
    margins = np.nan_to_num([row.change.margin for row in rows])
    axes.errorbar([row.change.points for row in rows], places, xerr=margins, fmt='o', capsize=3, label='ours, 95 %')
    axes.plot([row.paper_change for row in rows], places, 'D', mfc='none', color='tab:orange', label='paper')
    for row, place in zip(rows, places):
        offsets = np.array(row.scores.scores) - row.scores.mean + row.change.points
        axes.plot(offsets, np.full(len(offsets), place - 0.2), '.', color='tab:blue', alpha=0.4)
    axes.axvline(0, color='grey', linewidth=1)
    axes.set_yticks(places, [f'{row.label}  (table {row.table})' for row in rows])
    axes.set_ylim(-1, len(rows))
    axes.set_xlabel(f'change of {rows[0].scores.metric} against the model itself, points')
    axes.set_title(task)
    axes.legend(fontsize='small')
