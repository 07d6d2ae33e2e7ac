"""Metrics of mmengine that score class by class: for the report of a test, and for the validations of a training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from mmengine.evaluator import BaseMetric

from vt.errors import UserError
from vt.registry import METRICS
from vt.untrusted_text import printable

from .evaluation import (
    boundary_band,
    count_pairs,
    evaluate_segmentation,
    evaluate_several_labels,
    evaluate_single_label,
)


class PredictionCollector(BaseMetric):
    """Labels and scores of all images; after a test ``collected`` has them in the main process, in order."""

    collected: list[dict[str, Any]]

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep labels and scores of a batch."""
        for sample in data_samples:
            if not {'pred_score', 'gt_label'} <= sample.keys():
                raise UserError('scores of classes need labels, and from the model a score of each class: a classifier')
            found = {key: sample[key].cpu() for key in ('gt_label', 'pred_score')}
            found |= {key: each.float() for key, each in found.items() if each.dtype == torch.bfloat16}  # of --amp
            arrays = {key: each.numpy() for key, each in found.items()}
            self.results.append(dict(arrays, file=sample.get('img_path')))

    def compute_metrics(self, results: list) -> dict:
        """Keep all results; they are no metrics."""
        self.collected = results
        return {}


class MapCollector(PredictionCollector):
    """Of all maps of a segmentor the pixels of each pair of label and class, and those at boundaries.

    Args:
        ignore_index: the label of pixels that don't count.
        **kwargs: ``collect_device`` and ``prefix``, as of :class:`mmengine.evaluator.BaseMetric`.
    """

    def __init__(self, ignore_index: int = 255, **kwargs) -> None:
        super().__init__(**kwargs)
        self.ignore_index = ignore_index

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Count the pixels of a batch."""
        number = len((self.dataset_meta or {})['classes'])
        for sample in data_samples:
            if not {'gt_sem_seg', 'pred_sem_seg'} <= sample.keys():
                raise UserError('scores of classes need label masks, and from the model a mask: a segmentor')
            maps = (sample[key]['data'].squeeze().cpu().numpy() for key in ('gt_sem_seg', 'pred_sem_seg'))
            label, predicted = (each.astype(np.int64) for each in maps)
            valid = (label != self.ignore_index) & (label < number) & (predicted < number)
            pairs = count_pairs(label[valid], predicted[valid], number)
            at_label, at_class = (valid & boundary_band(each) for each in (label, predicted))
            right = at_label & at_class & (label == predicted)
            counted = (label[at_label], predicted[at_class], label[right])
            bands = np.stack([np.bincount(each, minlength=number) for each in counted])
            wrong = (label != predicted)[at_label].sum()
            self.results.append(dict(pairs=pairs, bands=bands, wrong=wrong, file=sample.get('img_path')))


@METRICS.register_module()
class ClassScores(PredictionCollector):
    """Scores of each class, after each validation of a classifier: in the log, the record of the run and the trackers.

    They are those of :func:`.evaluation.evaluate_single_label` or :func:`.evaluation.evaluate_several_labels`: its
    ``metrics``, ``ECE`` in percent, and the F1 of each class that has images, in percent. Spaces become ``_``.

    Args:
        several_labels: whether images have any number of labels.
        **kwargs: ``collect_device`` and ``prefix``, as of :class:`mmengine.evaluator.BaseMetric`.
    """

    default_prefix = 'classes'

    def __init__(self, several_labels: bool = False, **kwargs) -> None:
        super().__init__(**kwargs)
        self.several_labels = several_labels

    def compute_metrics(self, results: list) -> dict[str, float]:
        """``{name: score}`` of all images."""
        labels, scores = stack_predictions(results, self.several_labels)
        evaluate = evaluate_several_labels if self.several_labels else evaluate_single_label
        found = evaluate(labels, scores, _names(self, scores.shape[1]))
        error = {} if self.several_labels else dict(ECE=100 * found['ece'])
        return _scores(found['metrics'] | error, found, 'F1')


@METRICS.register_module()
class SegmentScores(MapCollector):
    """The same of a segmentor: IoU of each class that has pixels, boundary IoU and errors at boundaries, in percent.

    Arguments are those of :class:`MapCollector`.
    """

    default_prefix = 'classes'

    def compute_metrics(self, results: list) -> dict[str, float]:
        """``{name: score}`` of all images."""
        names = _names(self, 0)
        found = evaluate_segmentation(*sum_maps(results), names)
        return _scores(found['metrics'], found, 'IoU')


def stack_predictions(results: list[dict], several: bool) -> tuple[np.ndarray, np.ndarray]:
    """Labels of a :class:`PredictionCollector`, ``(N,)`` or, several an image, ``(N, C)``; and scores, ``(N, C)``."""
    wrong = [result for result in results if not np.isfinite(result['pred_score']).all()]
    if wrong:
        some = f'{len(wrong):,} of {len(results):,} images, such as {printable(wrong[0].get("file"), 200)}'
        raise UserError(f'scores are NaN or infinite for {some}: test without --amp, or with another checkpoint')
    scores = np.stack([result['pred_score'] for result in results])
    if not several:
        return np.concatenate([result['gt_label'] for result in results]), scores
    labels = np.zeros(scores.shape, bool)
    for row, result in zip(labels, results):
        row[result['gt_label'].astype(int)] = True
    return labels, scores


def sum_maps(results: list[dict]) -> list:
    """The first arguments of :func:`.evaluation.evaluate_segmentation`, of a :class:`MapCollector`."""
    return [sum(result[key] for result in results) for key in ('pairs', 'bands', 'wrong')]


def _names(metric: BaseMetric, number: int) -> list[str]:
    return [str(name) for name in (metric.dataset_meta or {}).get('classes') or range(number)]


def _scores(metrics: dict[str, float], found: dict[str, Any], key: str) -> dict[str, float]:
    rows = [row for row in found['per_class'] if row.get('samples', row.get('pixels'))]
    scores = metrics | {f'{key}/{row["name"]}': row[key] for row in rows}
    return {name.replace(' ', '_'): float(score) for name, score in scores.items() if np.isfinite(score)}
