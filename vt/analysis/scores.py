"""Scores of finished runs: their records, and tables of a row per label with confidence intervals over seeds."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from vt.engine import reporting
from vt.engine.run.work_directory import RECORD
from vt.errors import MissingFileError, UserError
from vt.files import NUMBER, read_json
from vt.hints import as_typed

KEYS = ('config', 'length', 'seed', 'options', 'date', 'device', 'versions', 'seconds', 'iterations', 'batch_size')
SHAPE = dict(  # of records, where a key is there
    **dict.fromkeys(('config', 'length', 'date', 'device'), str),
    **dict.fromkeys(('seed', 'iterations', 'batch_size'), int),
    **dict.fromkeys(('seconds', 'flops', 'parameters', 'throughput'), NUMBER),
    **dict.fromkeys(('checkpoint', 'digest'), str | None),
    options=dict(fold=int),
    versions=dict(torch=str),
    metrics={str: NUMBER},
)
METRICS = {'accuracy/top1': 'top-1', 'mIoU': 'mIoU'}
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scores:
    """Scores of the runs of one setting, in percent of ``metric``, one per seed; ``flops`` are those of one image."""

    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    metric: str
    flops: int | None
    parameters: int | None

    @property
    def mean(self) -> float:
        """Mean score in percent."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Change:
    """Difference of two mean scores in points, and half of its 95 % interval; NaN if no setting has two seeds."""

    points: float
    margin: float


def label_run(work_dir: Path) -> dict[str, Any]:
    """Read the record of a finished run, with the label of its work directory, ``LABEL_seed-SEED``.

    Folds of a cross-validation share a label, as seeds do. A damaged record, or one without validation, is a UserError.
    """
    record = _read(work_dir, KEYS)
    if not record.get('metrics'):
        run = f'{record["config"]}, seed {record["seed"]}'
        raise UserError(f'{run}: the run has no score; train it without --no-validate')
    label = work_dir.name.rsplit('_seed-', 1)[0]
    if 'fold' in record['options']:
        label = re.sub(r'(^|_)fold=\d+', '', label).strip('_') or Path(record['config']).stem
    return dict(label=label) | record


def read_run(work_dir: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Return the work directory of a run, its record, and that of ``vt test --benchmark``, empty without it.

    Raises:
        MissingFileError: the run has no record, since it was not trained to the end.
        UserError: a record is damaged.
    """
    training, benchmark = _read(work_dir, ['config']), Path(f'{work_dir}.benchmark.json')
    again, measured = f'measure it: {as_typed("vt test --benchmark")}', {}
    with suppress(MissingFileError):
        measured = read_json(benchmark, again, shape=SHAPE)
    return work_dir, training, measured


def describe_runs(runs: Sequence[tuple[Path, dict, dict]]) -> list[dict[str, str]]:
    """Describe finished runs, of :func:`read_run`, as rows of a table, with the score of their last validation.

    If ``vt test --benchmark`` was run on a checkpoint, its test score and speed are further columns. Runs of one
    name are distinguished by the settings in which they differ and by their folders.
    """
    models = [Path(training['config']).stem for _, training, _ in runs]
    rows = []
    for model, (work_dir, training, measured) in zip(models, runs):
        alike = [_settings(other) for name, (_, other, _) in zip(models, runs) if name == model]
        own = _settings(training)
        differing = [key for key in own if any(key not in each or each[key] != own[key] for each in alike)]
        told = ''.join(f', {key}={own[key]}' for key in differing)
        name = f'{model}{told} ({work_dir})' if len(alike) > 1 else model
        rows.append(dict(model=name) | _describe_run(training, training | measured))
    return rows


def _settings(record: dict[str, Any]) -> dict[str, Any]:
    """The options of the user, and the settings that they imply."""
    return {key: record.get(key) for key in ('config', 'length', 'seed')} | record.get('options', {})


def _describe_run(training: dict[str, Any], measured: dict[str, Any]) -> dict[str, str]:
    tested = measured.get('checkpoint')
    numbers = {
        'parameters (M)': ('.2f', 1e6, measured.get('parameters')),
        'FLOPs (G)': ('.4f', 1e9, measured.get('flops')),
        'images/s': ('.0f', 1, measured.get('throughput')),
        'training time (s)': ('.0f', 1, training.get('seconds')),
    }
    return {
        'score of the last validation (%)': _describe_score(training),
        'score in the test (%)': _describe_score(measured) if tested else '',
        'tested': Path(tested).name if tested else '',
        **{name: '' if number is None else f'{number / unit:{form}}' for name, (form, unit, number) in numbers.items()},
    }


def _read(work_dir: Path, keys: Iterable[str]) -> dict[str, Any]:
    again = f'train it first: {as_typed(f"vt train CONFIG --work-dir {work_dir}")}'
    return read_json(work_dir / RECORD, again, keys=keys, shape=SHAPE)


def _describe_score(record: dict[str, Any]) -> str:
    name, score = pick_score(record['metrics']) if record.get('metrics') else ('', 0.0)
    return f'{score:.2f} {name}' if name else ''


def pick_score(metrics: dict[str, float | None]) -> tuple[str, float]:
    """Return the name and value of a run's main metric: ``'top-1'`` or ``'mIoU'``, in percent, or else the first one.

    The value is NaN if the record has none.
    """
    found = next((key for key in METRICS if key in metrics), next(iter(metrics)))
    value = metrics[found]
    return METRICS.get(found, found), float('nan') if value is None else value


def read_each(read: Callable[[Path], Any], paths: Iterable[Path]) -> tuple[list, list[str]]:
    """Call ``read`` for each path; return the results, and an error message for each path that can't be read."""
    found, unread = [], []
    for path in paths:
        try:
            found.append(read(path))
        except (UserError, OSError) as error:
            line = reporting.describe(error)
            if line is None:
                raise
            unread.append(line)
    return found, unread


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
        raise UserError(f'{" and ".join(sorted(metrics))} cannot be compared: use runs with the same metric')
    each = 'each seed and fold' if any('fold' in run['options'] for run in records) else 'each seed'
    described = []
    for label, scores in rows.items():
        change = compare(scores, reference, list(rows.values()))
        described.append(
            {
                'run': label,
                f'{scores.metric} (%), {each}': ', '.join(f'{score:.2f}' for score in scores.scores),
                'mean': f'{scores.mean:.2f}',
                'change (95 %)': '' if scores is reference else f'{change.points:+.2f}{_interval(change.margin)}',
                'MFLOPs': '' if scores.flops is None else f'{scores.flops / 1e6:.1f}',
                'M params': '' if scores.parameters is None else f'{scores.parameters / 1e6:.2f}',
            }
        )
    return described


def describe_sweep(records: Sequence[dict]) -> list[dict[str, str]]:
    """Return the rows of :func:`describe` with the 95 % intervals of the means, from the spread pooled over all rows.

    They have the training speed in images/s. Runs of several configs are a UserError, and runs of one label and fold
    whose settings differ, as after an edit of the config.
    """
    if len(configs := {run['config'] for run in records}) > 1:
        raise UserError(f'the runs are of {" and ".join(sorted(configs))}: give each sweep its own --work-dir')
    digests: dict[tuple, str | None] = {}
    for run in records:
        found, label = run.get('digest'), run['label']
        if digests.setdefault((label, run['options'].get('fold')), found) != found:
            raise UserError(f'the runs of {label!r} differ in settings: remove the runs with other settings')
    rows = describe(records)
    scores = [summarize_row(records, row['run']) for row in rows]
    for row, own in zip(rows, scores):
        row['mean'] += _interval(mean_margin(own, scores))
        runs = [run for run in records if run['label'] == row['run'] and run['seconds']]
        each = [run['iterations'] * run['batch_size'] / run['seconds'] for run in runs]
        row['images/s in training'] = f'{np.mean(each):.4g}' if each else ''
    return rows


def _interval(margin: float) -> str:
    """Return half of an interval as text, ``±``; empty if it is NaN."""
    return '' if np.isnan(margin) else f' ± {margin:.2f}'


def summarize_row(records: Sequence[dict], label: str) -> Scores:
    """Summarize the runs of a label.

    Raises:
        UserError: the label has no records, a seed occurs twice, or runs differ in config, length or metrics.
    """

    def trial(run: dict) -> tuple[int, int]:
        return run['seed'], run['options'].get('fold', 0)

    runs = sorted((run for run in records if run['label'] == label), key=trial)
    if len({trial(run) for run in runs}) < len(runs):
        raise UserError(f'{label!r} has two runs with the same seed: give each run, LABEL_seed-SEED, once')
    if not runs:
        raise UserError(f'no records of {label!r}; labels are {", ".join(sorted({run["label"] for run in records}))}')
    for what, values in (
        ('config', [run['config'] for run in runs]),
        ('length', [run['length'] for run in runs]),
        ('metrics', [sorted(run['metrics']) for run in runs]),
    ):
        if other := [value for value in values if value != values[0]]:
            raise UserError(f'the runs of {label!r} differ in {what} ({values[0]}, {other[0]}): give them other labels')
    scored = [pick_score(run['metrics']) for run in runs]
    return Scores(
        seeds=tuple(run['seed'] for run in runs),
        scores=tuple(score for _, score in scored),
        metric=scored[0][0],
        flops=runs[0].get('flops'),
        parameters=runs[0].get('parameters'),
    )


def describe_origin(records: Sequence[dict]) -> str:
    """Describe the origin of a table in a sentence: seeds, dates, devices, versions and hours."""
    seeds = sorted({run['seed'] for run in records})
    named = f'{"Seed" if len(seeds) == 1 else "Seeds"} {", ".join(map(str, seeds))}'
    dates = sorted({run['date'] for run in records})
    devices = ' and '.join(sorted({run['device'] for run in records}))
    versions = ' and '.join(sorted({run['versions'].get('torch', 'unknown') for run in records}))
    seconds = [run['seconds'] for run in records]
    hours = '' if None in seconds else f', {sum(seconds) / 3600:.1f} hours of training iterations'
    period = dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'
    return f'{named}; {period}, {devices}, torch {versions}{hours}.'
