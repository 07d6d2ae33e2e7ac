"""Report of a sweep: mean and interval over seeds, and figures of score against cost."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vt.errors import MissingFileError, UserError

from . import score_tables
from .records import pick_score

FLOPS, SPEED = 'multiply-adds of an image', 'images/s in training'


def finished(folder: Path) -> list[Path]:
    """Return the work directories of the finished runs of a sweep, sorted by name.

    Raises:
        MissingFileError: no run is finished.
    """
    found = sorted(path.parent for path in folder.glob('*/training.json'))
    if not found:
        raise MissingFileError(
            f'there is no finished run in {folder}; train some: tools/sweep.py CONFIG KEY=VALUE,VALUE'
        )
    return found


def unfinished(folder: Path) -> list[str]:
    """Return the names of the runs that were started but not finished."""
    return sorted(
        path.parent.name for path in folder.glob('*/output.txt') if not (path.parent / 'training.json').exists()
    )


def check_settings(records: Sequence[dict]) -> None:
    """Refuse runs of several configs, or runs of one label and fold whose settings differ, as after an edit.

    Raises:
        UserError: there are such runs.
    """
    if len(configs := {run['config'] for run in records}) > 1:
        raise UserError(f'the runs are of {" and ".join(sorted(configs))}: give each sweep its own --work-dir')
    digests: dict[tuple, str | None] = {}
    for run in records:
        found, label = run.get('digest'), run['label']
        if digests.setdefault((label, run['options'].get('fold')), found) != found:
            raise UserError(f'the runs of {label!r} differ in settings: remove those of other ones')


def tabulate(records: Sequence[dict], speed: bool = True) -> list[dict[str, str]]:
    """Return a row per combination of settings, with the training speed in images/s if ``speed``.

    The interval of a mean is the 95 % interval over seeds and folds, from the spread pooled over all rows.
    """
    speeds, rows = _means(records, _speed), score_tables.describe(records)
    scores = {row['run']: score_tables.summarize_row(records, row['run']) for row in rows}
    for row in rows:
        row['mean'] += score_tables.interval(score_tables.mean_margin(scores[row['run']], [*scores.values()]))
    return [row | ({SPEED: f'{speeds[row["run"]]:.4g}'} if speed else {}) for row in rows]


def draw(records: Sequence[dict], speed: bool = True) -> Figure:
    """Draw mean scores against multiply-adds and, if ``speed``, measured speed, with the Pareto front as a line."""
    figure = Figure(figsize=(12 if speed else 7, 5), layout='constrained')
    panels = figure.subplots(1, 1 + speed, sharey=True, squeeze=False)[0]
    scores = _means(records, lambda run: pick_score(run['metrics'])[1])
    _draw_panel(panels[0], _means(records, lambda run: run['flops']), scores, sign=-1)
    panels[0].set(xlabel=FLOPS, ylabel=f'{pick_score(records[0]["metrics"])[0]}, %')
    if speed:
        _draw_panel(panels[1], _means(records, _speed), scores, sign=1)
        panels[1].set(xlabel=SPEED)
    return figure


def best(costs: Sequence[float], scores: Sequence[float], sign: int) -> list[int]:
    """Return the indices of the points on the Pareto front, sorted by cost.

    Args:
        costs: cost of each point.
        scores: score of each point, higher is better.
        sign: -1 if a lower cost is better, 1 if a higher cost is better.
    """
    points = list(zip([sign * cost for cost in costs], scores))
    front = [
        index
        for index, point in enumerate(points)
        if not any(other != point and other[0] >= point[0] and other[1] >= point[1] for other in points)
    ]
    return sorted(front, key=lambda index: (costs[index], scores[index]))


def _draw_panel(axes: Axes, costs: dict[str, float], scores: dict[str, float], sign: int) -> None:
    xs, ys = list(costs.values()), list(scores.values())
    axes.scatter(xs, ys)
    front = best(xs, ys, sign)
    axes.plot([xs[index] for index in front], [ys[index] for index in front], color='gray', zorder=0)
    for label, x in costs.items():
        axes.annotate(label, (x, scores[label]), textcoords='offset points', xytext=(4, 4), fontsize='small')
    axes.margins(0.15)


def _means(records: Sequence[dict], value: Callable[[dict], float]) -> dict[str, float]:
    """Mean of a value over the runs of each label."""
    values: dict[str, list[float]] = {}
    for run in records:
        values.setdefault(run['label'], []).append(value(run))
    return {label: np.mean(each) for label, each in values.items()}


def _speed(run: dict) -> float:
    return run['iterations'] * run['batch_size'] / run['seconds']
