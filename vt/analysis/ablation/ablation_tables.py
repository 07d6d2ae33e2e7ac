"""Ablations as rows of tables, as a picture, and in a page."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vt.analysis.paper import ABLATIONS
from vt.analysis.speed.measurement import KINDS, read_record

from .paper_changes import Comparison
from .run_scores import Scores

TITLES = {2: 'VT-ResNet against its ResNet', 9: 'VT-FPN against FPN'}
TITLES |= {number: ablation.title for number, ablation in ABLATIONS.items()}
Speeds = dict[str, dict[str, float]]


def read_speeds(paths: Iterable[Path]) -> Speeds:
    """Median seconds of whole models by config and kind, from what ``tools/benchmark.py --out`` wrote."""
    speeds: Speeds = {}
    for path in paths:
        for measurement in read_record(path).results:
            if measurement.part == 'whole':
                speeds.setdefault(measurement.model, {})[measurement.kind] = measurement.median
    return speeds


def describe(rows: list[Comparison], speeds: Speeds) -> list[dict[str, str]]:
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


def name_task(rows: list[dict[str, str]], task: str, table: int) -> list[dict[str, str]]:
    """Rows that name their task and table, but not the metric, so that those of several metrics share their columns."""
    renamed = [{name.replace('top-1', 'score').replace('mIoU', 'score'): row[name] for name in row} for row in rows]
    return [{'task': task, 'table': str(table)} | row for row in renamed]


def draw(tasks: dict[str, dict[int, list[Comparison]]]) -> Figure:
    """Every change against the model itself, with its interval and the paper's beside it; a panel a task."""
    figure, panels = plt.subplots(1, len(tasks), figsize=(6.5 * len(tasks), 5), squeeze=False, layout='constrained')
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
