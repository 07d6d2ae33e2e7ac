"""Tables of scores over seeds: a row per label, compared with the first row, with confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

from vt.errors import UserError

from .records import pick_score

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scores:
    """Scores of the runs of one setting, in percent of ``metric``, one per seed; ``flops`` are those of one image."""

    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    metric: str
    flops: int
    parameters: int

    @property
    def mean(self) -> float:
        """Mean score in percent."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Change:
    """Difference of two mean scores in points, and half of its 95 % interval; NaN if no setting has two seeds."""

    points: float
    margin: float


def compare(scores: Scores, reference: Scores, task: Sequence[Scores]) -> Change:
    """Compare two mean scores, with Student's t interval from the variance pooled over all settings of the task."""
    points = scores.mean - reference.mean
    return Change(points, _margin(1 / len(scores.scores) + 1 / len(reference.scores), task))


def mean_margin(scores: Scores, task: Sequence[Scores]) -> float:
    """Half of the 95 % interval of a mean, from the variance pooled over the task; NaN as in :class:`Change`."""
    return _margin(1 / len(scores.scores), task)


def _margin(factor: float, task: Sequence[Scores]) -> float:
    freedom = sum(len(other.scores) - 1 for other in task)
    if not freedom:
        return float('nan')
    variance = sum(np.var(other.scores) * len(other.scores) for other in task) / freedom
    return float(student_t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(factor * variance))


def trial(run: dict) -> tuple[int, int]:
    """Return seed and fold of a record."""
    return run['seed'], run['options'].get('fold', 0)


def describe(records: Sequence[dict], labels: Sequence[str] = ()) -> list[dict[str, str]]:
    """Return a row per label: scores of its seeds and folds, their mean, and the difference from the first label.

    Args:
        records: records with the ``label`` of their row.
        labels: labels of the rows, in order; by default all, in the order of the records.

    Raises:
        UserError: a label has no records, or the metrics of the rows differ.
    """
    rows = {label: summarize_row(records, label) for label in labels or dict.fromkeys(run['label'] for run in records)}
    reference, *_ = rows.values()
    if len(metrics := {scores.metric for scores in rows.values()}) > 1:
        raise UserError(f'{" and ".join(sorted(metrics))} cannot be compared: give runs with the same metric')
    each = 'each seed and fold' if any('fold' in run['options'] for run in records) else 'each seed'
    described = []
    for label, scores in rows.items():
        change = compare(scores, reference, list(rows.values()))
        described.append(
            {
                'run': label,
                f'{scores.metric} (%), {each}': ', '.join(f'{score:.2f}' for score in scores.scores),
                'mean': f'{scores.mean:.2f}',
                'change (95 %)': '' if scores is reference else f'{change.points:+.2f}{interval(change.margin)}',
                'MFLOPs': f'{scores.flops / 1e6:.1f}',
                'M params': f'{scores.parameters / 1e6:.2f}',
            }
        )
    return described


def interval(margin: float) -> str:
    """Half an interval behind its middle; nothing where it is NaN."""
    return '' if np.isnan(margin) else f' ± {margin:.2f}'


def summarize_row(records: Sequence[dict], label: str) -> Scores:
    """Summarize the runs of a label.

    Raises:
        UserError: the label has no records, a seed occurs twice, or runs differ in config, length or metrics.
    """
    runs = sorted((run for run in records if run['label'] == label), key=trial)
    if len({trial(run) for run in runs}) < len(runs):
        raise UserError(f'a seed of {label!r} occurs twice: give each run, LABEL_seed-SEED, of one setting once')
    if not runs:
        raise UserError(f'no records of {label!r}; there are: {", ".join(sorted({run["label"] for run in records}))}')
    for what, values in (
        ('config', [run['config'] for run in runs]),
        ('length', [run['length'] for run in runs]),
        ('metrics', [sorted(run['metrics']) for run in runs]),
    ):
        if other := [value for value in values if value != values[0]]:
            raise UserError(f'the runs of {label!r} differ in {what} ({values[0]}, {other[0]}): give them other names')
    scored = [pick_score(run['metrics']) for run in runs]
    return Scores(
        seeds=tuple(run['seed'] for run in runs),
        scores=tuple(score for _, score in scored),
        metric=scored[0][0],
        flops=runs[0]['flops'],
        parameters=runs[0]['parameters'],
    )


def describe_origin(records: Sequence[dict]) -> str:
    """Describe the origin of a table in a sentence: seeds, dates, devices, versions and hours."""
    seeds = sorted({run['seed'] for run in records})
    named = f'{"Seed" if len(seeds) == 1 else "Seeds"} {", ".join(map(str, seeds))}'
    dates = sorted({run['date'] for run in records})
    devices = ' and '.join(sorted({run['device'] for run in records}))
    versions = ' and '.join(sorted({run['versions']['torch'] for run in records}))
    hours = sum(run['seconds'] for run in records) / 3600
    period = dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'
    return f'{named}; {period}, {devices}, torch {versions}, {hours:.1f} hours of training iterations.'
