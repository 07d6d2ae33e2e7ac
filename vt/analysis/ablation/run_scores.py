"""Scores of finished runs, and confidence intervals of their differences.

A run is the record that ``tools/train.py`` writes. Runs of one config with several seeds are one row.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t as student_t

from vt.checkpoints.files import read_json
from vt.errors import UserError

from .records import check_record, pick_score

CONFIDENCE = 0.95
IDENTITY, COSTS = ('config', 'length', 'seed', 'options'), ('metrics', 'flops', 'parameters')  # of a record


@dataclass(frozen=True)
class Scores:
    """Scores of the runs of one config, in percent of ``metric``, one per seed.

    The config name consists of ``model``, such as ``vt-resnet18-half``, ``variant``, the ablated part (None for the
    model itself), and ``data``, the data set and the rest of the name. ``length`` is that of the training, such as
    ``'10 epochs'``; ``flops`` are multiply-adds of one image.
    """

    model: str
    variant: str | None
    data: str
    length: str
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    metric: str
    flops: int
    parameters: int

    @property
    def task(self) -> str:
        """Data and length of the training; only scores of the same task are compared."""
        return f'{self.data}, {self.length}'

    @property
    def config(self) -> str:
        """Name of the config."""
        return '_'.join(part for part in (self.model, self.variant, self.data) if part)

    @property
    def mean(self) -> float:
        """Mean score in percent."""
        return float(np.mean(self.scores))

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds, in percentage points; NaN for one seed."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else float('nan')


@dataclass(frozen=True)
class Change:
    """Difference of two mean scores in points, and half of its 95 % interval; NaN if no config has two seeds."""

    points: float
    margin: float

    @property
    def verdict(self) -> str:
        """Sign of the difference: ``'better'``, ``'worse'``, or ``'not told apart'`` if the interval contains zero."""
        if np.isnan(self.margin) or abs(self.points) <= self.margin:
            return 'no clear difference'
        return 'better' if self.points > 0 else 'worse'


def read_records(paths: Iterable[Path]) -> list[dict]:
    """Read the records of finished runs, sorted as in :func:`arrange`.

    Args:
        paths: work directories, or JSON files with a list of records.

    Raises:
        MissingFileError: a run is not finished, or does not exist.
        UserError: a record is damaged, a run was trained without validation, or a seed of a config occurs twice.
    """
    return arrange(record for path in paths for record in read_run(path))


def read_run(path: Path) -> list[dict]:
    """Read the record of one run, or those of a file; raises as :func:`read_records`."""
    source = path / 'training.json' if path.is_dir() else path
    found = read_json(source, f'train it first: tools/train.py CONFIG --work-dir {path}', object)
    records = found if isinstance(found, list) else [found]
    for record in records:
        check_record(record, source, IDENTITY)
        if not record.get('metrics'):
            raise UserError(
                f'{record["config"]}, seed {record["seed"]}: the run has no score; train it without --no-validate'
            )
        check_record(record, source, COSTS)
    return records


def arrange(records: Iterable[dict]) -> list[dict]:
    """Sort records by config, length and seed.

    Raises:
        UserError: a seed of a config occurs twice.
    """
    records, seen = [*records], set()
    for record in records:
        run = record['config'], record['length'], record['seed'], json.dumps(record['options'], sort_keys=True)
        if run in seen:
            raise UserError(f'{run[0]}, {run[1]}, seed {run[2]}: the run occurs twice; name each run once')
        seen.add(run)
    return sorted(records, key=lambda record: (record['config'], record['length'], record['seed']))


def summarize(runs: Sequence[dict], model: str, variant: str | None, data: str, length: str) -> Scores:
    """Summarize the records of several seeds of one config."""
    scored = [pick_score(run['metrics']) for run in runs]
    return Scores(
        model=model,
        variant=variant,
        data=data,
        length=length,
        seeds=tuple(run['seed'] for run in runs),
        scores=tuple(score for _, score in scored),
        metric=scored[0][0],
        flops=runs[0]['flops'],
        parameters=runs[0]['parameters'],
    )


def compare(scores: Scores, reference: Scores, task: list[Scores]) -> Change:
    """Compare two mean scores, with Student's t interval from the variance pooled over all configs of the task."""
    points = scores.mean - reference.mean
    return Change(points, _margin(1 / len(scores.scores) + 1 / len(reference.scores), task))


def mean_margin(scores: Scores, task: list[Scores]) -> float:
    """Half of the 95 % interval of a mean, from the variance pooled over the task; NaN as in :class:`Change`."""
    return _margin(1 / len(scores.scores), task)


def _margin(factor: float, task: list[Scores]) -> float:
    freedom = sum(len(other.scores) - 1 for other in task)
    if not freedom:
        return float('nan')
    variance = sum(np.var(other.scores) * len(other.scores) for other in task) / freedom
    return float(student_t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(factor * variance))
