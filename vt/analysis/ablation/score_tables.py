"""Tables of scores: a row per label with all its seeds, compared with the first row."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vt.errors import UserError

from .records import pick_score, read_run
from .run_scores import Scores, compare


def label_run(folder: Path) -> dict:
    """Read the record of a finished run, see :func:`read_run`, with the label of its work directory,
    ``LABEL_seed-SEED``. Folds of a cross-validation share a label, as seeds do.
    """
    label, record = folder.name.rsplit('_seed-', 1)[0], read_run(folder)
    if 'fold' in record['options']:
        label = re.sub(r'(^|_)fold=\d+', '', label).strip('_') or Path(record['config']).stem
    return dict(label=label) | record


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
