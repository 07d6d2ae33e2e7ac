"""Scores of a setting over seeds, and confidence intervals of their differences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student_t

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
