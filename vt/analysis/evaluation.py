"""Scores of each class, in percent: for one label per image, for several, and for segmentation.

The metrics of mmengine are for the report of a test, and for the validations of a training.
"""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from mmengine.evaluator import BaseMetric
from scipy.sparse import coo_array, csr_array

from vt.errors import UserError
from vt.registry import METRICS
from vt.untrusted_text import printable

BINS = 15  # of confidences, as in Guo et al., "On Calibration of Modern Neural Networks", 2017
TOP = (1, 2, 3, 5, 10)
BAND = 0.02  # of a boundary, to each side, in diagonals of the image


class PredictionCollector(BaseMetric):
    """Labels and scores of all images; after a test ``collected`` has them in the main process, in order."""

    collected: list[dict[str, Any]]

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep labels and scores of a batch."""
        for sample in data_samples:
            if not {'pred_score', 'gt_label'} <= sample.keys():
                raise UserError('scores of classes require labels, and a classifier that gives a score for each class')
            label, score = sample['gt_label'], sample['pred_score'].float()  # numpy has no bfloat16
            self.results.append(
                dict(gt_label=label.cpu().numpy(), pred_score=score.cpu().numpy(), file=sample.get('img_path'))
            )

    def compute_metrics(self, results: list) -> dict:
        """Keep all results; they are not metrics."""
        self.collected = results
        return {}


class MapCollector(PredictionCollector):
    """Count the pixels of each pair of label and predicted class over all images, and those at boundaries.

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
                raise UserError('scores of classes require label masks, and a segmentation model')
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

    They are those of :func:`evaluate_single_label` or :func:`evaluate_several_labels`: its
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
    """:class:`ClassScores` of a segmentor: IoU of each class, boundary IoU and errors at boundaries, in percent.

    Args:
        ignore_index: the label of pixels that don't count.
        **kwargs: ``collect_device`` and ``prefix``, as of :class:`mmengine.evaluator.BaseMetric`.
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
    """The first arguments of :func:`evaluate_segmentation`, of a :class:`MapCollector`."""
    return [sum(result[key] for result in results) for key in ('pairs', 'bands', 'wrong')]


def _names(metric: BaseMetric, number: int) -> list[str]:
    return [str(name) for name in (metric.dataset_meta or {}).get('classes') or range(number)]


def _scores(metrics: dict[str, float], found: dict[str, Any], key: str) -> dict[str, float]:
    rows = [row for row in found['per_class'] if row.get('samples', row.get('pixels'))]
    scores = metrics | {f'{key}/{row["name"]}': row[key] for row in rows}
    return {name.replace(' ', '_'): float(score) for name, score in scores.items() if np.isfinite(score)}


def evaluate_single_label(labels: np.ndarray, scores: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Metrics of images with one label each, from labels ``(N,)`` and probabilities ``(N, C)``.

    Returns:
        ``metrics`` (top-k, and macro means over the classes that have images), ``per_class``, ``confusions`` (of
        :func:`count_pairs`), ``ece`` (0 to 1) and ``reliability`` (a row a bin).
    """
    from sklearn.metrics import precision_recall_fscore_support  # slow to import: not in training

    present, predicted = np.unique(labels), scores.argmax(axis=1)
    own = scores[np.arange(len(labels)), labels][:, None]
    ties = (scores == own) & (np.arange(len(names)) < labels[:, None])  # the first class counts first
    ranks = (scores > own).sum(axis=1) + ties.sum(axis=1)
    metrics = {f'top-{k}': 100 * (ranks < k).mean() for k in TOP if k == 1 or k < len(names)}
    macro = precision_recall_fscore_support(labels, predicted, labels=present, average='macro', zero_division=0)
    metrics |= {f'macro {name}': 100 * value for name, value in zip(('precision', 'recall', 'F1'), macro)}
    confusions = count_pairs(labels, predicted, len(names))
    ece, reliability = calibration(scores.max(axis=1), predicted == labels)
    per_class = _per_class(labels, predicted, names, predicted=np.bincount(predicted, minlength=len(names)))
    return dict(metrics=metrics, per_class=per_class, confusions=confusions, ece=ece, reliability=reliability)


def count_pairs(labels: np.ndarray, predicted: np.ndarray, number: int) -> csr_array:
    """Count how often each of ``number`` labels is predicted as each class: a confusion matrix, sparse, ``(C, C)``."""
    return coo_array((np.ones(len(labels), np.int64), (labels, predicted)), shape=(number, number)).tocsr()


def evaluate_several_labels(labels: np.ndarray, scores: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Metrics of images with any number of labels, ``(N, C)``, from the score of each label alone, 0 to 1, ``(N, C)``.

    Returns:
        ``metrics`` (mAP over the classes that have images), and ``per_class`` at a threshold of 0.5, with the average
        precision and the threshold of the highest F1.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve

    predicted = scores >= 0.5
    wide = [np.pad(each, ((0, 0), (0, 1))) for each in (labels, predicted)]  # scikit-learn takes one column for a label
    per_class = _per_class(*wide, names, predicted=predicted.sum(axis=0))
    for row, has, score in zip(per_class, labels.T, scores.T):
        row |= dict(AP=np.nan, best_threshold=np.nan, best_F1=np.nan)
        if has.any():
            precision, recall, thresholds = precision_recall_curve(has, score)
            f1 = (2 * precision * recall / np.maximum(precision + recall, 1e-12))[:-1]
            row |= dict(AP=100 * average_precision_score(has, score), best_threshold=thresholds[f1.argmax()])
            row['best_F1'] = 100 * f1.max()
    tested = [row for row in per_class if row['samples']]
    metrics = {'mAP': np.mean([row['AP'] for row in tested]), 'macro F1': np.mean([row['F1'] for row in tested])}
    return dict(metrics=metrics, per_class=per_class)


def _per_class(labels: np.ndarray, predictions: np.ndarray, names: Sequence[str], **counts: Any) -> list[dict]:
    from sklearn.metrics import precision_recall_fscore_support

    classes = range(len(names))
    found = precision_recall_fscore_support(labels, predictions, labels=classes, average=None, zero_division=np.nan)
    precision, recall, f1 = 100 * np.array(found[:3])
    columns = dict(samples=found[3], **counts, precision=precision, recall=recall, F1=f1)
    return [dict(label=k, name=names[k]) | {key: column[k] for key, column in columns.items()} for k in classes]


def calibration(confidences: np.ndarray, correct: np.ndarray) -> tuple[float, list[dict[str, float]]]:
    """Expected calibration error, 0 to 1, and the bins of equal width that it is from.

    It is the mean over images of ``|accuracy - confidence|`` of their bin; a bin holds its upper bound. ``confidences``
    are the scores of the predicted classes, ``(N,)``, and ``correct`` says which are right.
    """
    bins = np.clip(np.ceil(confidences * BINS).astype(int) - 1, 0, BINS - 1)
    counts, confidence, accuracy = (np.bincount(bins, each, BINS) for each in (None, confidences, correct))
    ece = float(abs(accuracy - confidence).sum() / len(bins))
    with np.errstate(invalid='ignore'):  # of a bin without images
        columns = dict(samples=counts, confidence=confidence / counts, accuracy=accuracy / counts)
    rows = zip(*(column.tolist() for column in columns.values()))
    return ece, [dict(above=k / BINS, up_to=(k + 1) / BINS, **dict(zip(columns, row))) for k, row in enumerate(rows)]


def evaluate_segmentation(confusions: csr_array, bands: np.ndarray, wrong: int, names: Sequence[str]) -> dict[str, Any]:
    """Metrics of segmentations.

    Args:
        confusions: pixels of each pair of label and predicted class, of :func:`count_pairs`.
        bands: pixels of each class in the :func:`boundary_band` of the labels, in that of the predictions, and those of
            both that are right; ``(3, C)``.
        wrong: pixels in the band of the labels whose prediction is wrong.
        names: of the classes.

    Returns:
        ``metrics`` (mean boundary IoU, and the share of wrong pixels in the band of the labels and elsewhere),
        ``per_class`` and ``confusions``.
    """
    pixels, right, in_band = confusions.sum(axis=1), confusions.diagonal(), bands[0].sum()
    with np.errstate(invalid='ignore'):  # of a class without pixels
        boundary_iou = 100 * bands[2] / (bands[0] + bands[1] - bands[2])
        near = 100 * wrong / in_band
        elsewhere = 100 * (pixels.sum() - right.sum() - wrong) / (pixels.sum() - in_band)
        columns = dict(IoU=iou_of(confusions), accuracy=100 * right / pixels, boundary_IoU=boundary_iou)
    columns = dict(pixels=pixels, predicted=confusions.sum(axis=0)) | columns
    metrics = {'mean boundary IoU': mean_of(boundary_iou), 'wrong at boundaries': near, 'wrong elsewhere': elsewhere}
    rows = [dict(label=k, name=names[k]) | {key: each[k] for key, each in columns.items()} for k in range(len(names))]
    return dict(metrics=metrics, per_class=rows, confusions=confusions)


def iou_of(confusions: csr_array) -> np.ndarray:
    """IoU of each class in percent, ``(C,)``, of :func:`count_pairs`; NaN of a class without pixels."""
    right = confusions.diagonal()
    with np.errstate(invalid='ignore'):
        return 100 * right / (confusions.sum(axis=0) + confusions.sum(axis=1) - right)


def mean_of(scores: np.ndarray) -> float:
    """The mean without NaN; NaN if there is nothing else."""
    return float(np.nanmean(scores)) if np.isfinite(scores).any() else np.nan


def boundary_band(labels: np.ndarray) -> np.ndarray:
    """Which pixels lie at the boundary of their segment, or of the image: ``(H, W)``, as the labels.

    Their distance to a pixel of another label is at most 2 % of the image's diagonal, over the larger of rows and
    columns. Cheng et al., "Boundary IoU", CVPR 2021.
    """
    # Where a path to another label leaves its own, a pixel has a neighbour of another label.
    framed = cv2.copyMakeBorder((labels + 1).astype(np.uint16), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    inner = cv2.erode(framed, np.ones((3, 3))) == cv2.dilate(framed, np.ones((3, 3)))
    distance = cv2.distanceTransform(inner.astype(np.uint8), cv2.DIST_C, 3)[1:-1, 1:-1]
    return distance < max(1, round(BAND * np.hypot(*labels.shape)))
