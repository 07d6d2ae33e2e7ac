"""The report of ``tools/test.py --report FOLDER``: scores of each class and images, as a page and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any

import cv2
import joblib
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.runner import Runner
from mmpretrain.models import MultiLabelClsHead
from scipy.sparse import coo_array
from torch import nn
from torch.utils.data import Dataset

from vt.analysis.attention.heat_maps import HeatMapper
from vt.analysis.attention.token_figure import glow
from vt.analysis.class_scores import MapCollector, PredictionCollector, stack_predictions, sum_maps
from vt.analysis.evaluation import (
    BAND,
    BINS,
    evaluate_segmentation,
    evaluate_several_labels,
    evaluate_single_label,
    iou_of,
    mean_of,
)
from vt.analysis.evaluation_figures import draw_confusion, draw_curves, draw_reliability, read_curves
from vt.analysis.figures import figure_address, image_address, shrink
from vt.checkpoints.weights import unwrap
from vt.engine.checks.classes import has_labels, without_wrappers
from vt.engine.image_hooks import visible
from vt.engine.launch import is_segmentation
from vt.engine.preparation import preparation_of
from vt.engine.run_record import describe_origin
from vt.errors import UserError
from vt.files import write_atomically
from vt.untrusted_text import printable

from .data_page import MAX_NAME, ROWS, TEMPLATES, colour
from .outputs import write_json
from .report_comparison import compare_reports

FILES = ('report.html', 'report.json')
SIDE = 160  # of an image on the page, in pixels
IMAGES, PAIRS = 24, 20  # images of each kind and pairs of classes on the page
MOST_DRAWN = 1000  # classes of a confusion matrix on the page


def check_report_folder(folder: str) -> None:
    """Raise a UserError if a folder is a file, or contains anything except an earlier report."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UserError(f'--report {folder} is a file: give the name of a folder')
    if path.is_dir() and (others := sorted({file.name for file in path.iterdir()} - {*FILES})):
        raise UserError(f'--report {folder} contains other files, such as {others[0]}: give a new folder')


def add_collector(runner: Runner) -> PredictionCollector:
    """Add a collector of predictions to a runner's test.

    Raises:
        UserError: the images have no labels, or are not tested in the order of the data set.
    """
    dataset, evaluator = runner.test_dataloader.dataset, runner.test_evaluator
    if getattr(runner.test_dataloader.sampler, 'shuffle', False):
        raise UserError('--report needs images in order: set test_dataloader.sampler.shuffle=False')
    if is_segmentation(runner.cfg):
        ignored = [metric.ignore_index for metric in evaluator.metrics if hasattr(metric, 'ignore_index')]
        ignore_index = ignored[0] if ignored else getattr(without_wrappers(dataset), 'ignore_index', 255)
        collector = MapCollector(ignore_index, prefix='report')
    elif has_labels(dataset):
        collector = PredictionCollector(prefix='report')
    else:
        raise UserError('--report compares predictions with labels, and the test images have none')
    collector.dataset_meta = evaluator.dataset_meta
    evaluator.metrics.append(collector)
    return collector


def write_report(
    folder: str,
    runner: Runner,
    collector: PredictionCollector,
    metrics: dict[str, float],
    config: str,
    checkpoint: str,
    other: dict[str, Any] | None = None,
    mapper: HeatMapper | None = None,
) -> None:
    """Write ``report.html`` and ``report.json``.

    Args:
        folder: folder to write to.
        runner: runner after the test.
        collector: result of :func:`add_collector`.
        metrics: numbers of the evaluator.
        config, checkpoint: paths of the config and the checkpoint.
        other: earlier report to compare with, of :func:`read_earlier`.
        mapper: computes heat maps of the images.
    """
    results, dataset = collector.collected, runner.test_dataloader.dataset
    maps = isinstance(collector, MapCollector)
    names = (collector.dataset_meta or {}).get('classes') or range(len(results[0]['pred_score']))
    names = [str(name) for name in names]
    if maps:
        found, ranked = _segmentation(results, names)
    else:
        several = isinstance(getattr(unwrap(runner.model), 'head', None), MultiLabelClsHead)
        found, ranked = _classification(results, names, several)
    metrics, key = metrics | found.pop('metrics', {}), 'IoU' if maps else 'F1'
    device = next(unwrap(runner.model).parameters()).device
    record = dict(config=config, checkpoint=checkpoint, images=len(results), metrics=metrics, classes=names)
    curves = read_curves(Path(checkpoint).parent)
    confusions, reliability = found.get('confusions'), found.get('reliability')
    if confusions is not None:
        pairs = confusions.tocoo()
        shares = coo_array((pairs.data / confusions.sum(axis=1)[pairs.row], pairs.coords), shape=pairs.shape)
        found['confusions'] = np.stack([*pairs.coords, pairs.data], axis=1)
    record |= found | ranked | dict(curves=curves)
    comparison = compare_reports(record, other, key) if other else None
    record |= dict(comparison=comparison) if other else {}
    write_json(describe_origin(device) | record, Path(folder, 'report.json'), None)
    palette = dataset.metainfo.get('palette') if maps else None
    shown = _Images(dataset, preparation_of(runner.cfg).is_bgr, runner.model, palette, mapper)
    sheets = {title.replace('_', ' '): [*map(shown, images)] for title, images in ranked.items()}
    rows = sorted(found['per_class'], key=lambda row: np.nan_to_num(row[key], nan=np.inf))
    drawn = confusions is not None and len(names) <= MOST_DRAWN
    TEMPLATES.filters['shown'] = _shown
    shown_only = dict(
        side=((3 if maps else 1) + bool(mapper)) * SIDE,
        heat_maps=shown.mapper and shown.mapper.method,
        key=key,
        rows=rows[:ROWS],
        hidden_rows=max(0, len(rows) - ROWS),
        confusion=figure_address(draw_confusion(shares.toarray(), names)) if drawn else '',
        pairs=[] if confusions is None else _most_confused(shares, names),
        bins=BINS,
        band=BAND,
        reliability=figure_address(draw_reliability(reliability)) if reliability else '',
        sheets=sheets,
        curves=figure_address(draw_curves(curves)) if any(curves.values()) else '',
        comparison=comparison,
        changes=sorted(comparison['per_class'], key=_change)[:ROWS] if comparison else [],
    )
    text = TEMPLATES.get_template('evaluation_report.html.j2').render(record | shown_only)
    write_atomically(Path(folder, 'report.html'), text)
    print(f'written to {folder}')


def _classification(results: list[dict], names: list[str], several: bool) -> tuple[dict, dict[str, list[dict]]]:
    """Return metrics, and the images with the highest loss and with the smallest lead of the best class."""
    labels, scores = stack_predictions(results, several)
    if several:
        found, certainty = evaluate_several_labels(labels, scores, names), np.where(labels, scores, 1 - scores)
        loss, lead = -np.log(np.maximum(certainty, 1e-12)).sum(axis=1), np.abs(scores - 0.5).min(axis=1)
    else:
        found = evaluate_single_label(labels, scores, names)
        loss = -scores[np.arange(len(labels)), labels]
        lead = np.diff(np.partition(scores, -2)[:, -2:])[:, 0] if len(names) > 1 else scores[:, 0]

    def describe(index: int) -> dict[str, Any]:
        about, score = dict(index=index, file=results[index]['file']), scores[index]
        if several:
            chosen = [names[k] for k in np.flatnonzero(score >= 0.5)]
            return about | dict(label=[names[k] for k in np.flatnonzero(labels[index])], prediction=chosen)
        label, best = labels[index], score.argmax()
        return about | dict(label=names[label], prediction=names[best], score=score[best], score_of_label=score[label])

    digest = joblib.hash([result['gt_label'].tolist() for result in results])
    right = (labels == (scores >= 0.5)).mean(axis=1) if several else (labels == scores.argmax(axis=1)).astype(int)
    found |= dict(image_scores=right, labels_digest=digest)
    orders = dict(worst=np.argsort(-loss, kind='stable'), least_certain=np.argsort(lead, kind='stable'))
    return found, {title: [describe(int(index)) for index in order[:IMAGES]] for title, order in orders.items()}


def _segmentation(results: list[dict], names: list[str]) -> tuple[dict, dict[str, list[dict]]]:
    """Return metrics, and the images with the lowest mean IoU of their classes."""
    means = [mean_of(iou_of(result['pairs'])) for result in results]
    digest = joblib.hash([result['pairs'].sum(axis=1).tolist() for result in results])
    order = [int(index) for index in np.argsort(means, kind='stable') if np.isfinite(means[index])]
    worst = [dict(index=index, file=results[index]['file'], mean_IoU=means[index]) for index in order[:IMAGES]]
    found = evaluate_segmentation(*sum_maps(results), names)
    return found | dict(image_scores=means, labels_digest=digest), dict(worst=worst)


@dataclass
class _Images:
    """Captions and data URLs of images; for a segmentor with labels and prediction beside the image."""

    dataset: Dataset
    is_bgr: bool
    model: nn.Module
    palette: Sequence | None
    mapper: HeatMapper | None

    def __call__(self, about: dict[str, Any]) -> tuple[str, str]:
        sample = self.dataset[about['index']]
        inputs, images = sample['inputs'], []
        while isinstance(inputs, list) or inputs.ndim == 5:  # test-time augmentation, clips of a video
            inputs = inputs[0]
        images.append(visible(inputs if inputs.ndim == 3 else inputs[:, inputs.shape[1] // 2], self.is_bgr))
        if self.mapper:
            try:
                images.append(self._heat(sample, *images[0].shape[:2]))
            except UserError as error:  # the model has no heat maps; the report is written without them
                print(f'no heat maps: {error}')
                self.mapper = None
        panels = [shrink(each, SIDE) for each in images]
        if 'mean_IoU' in about:
            panels[1:1] = [
                colour(panels[0], each, self.palette) for each in self._masks(sample, panels[0].shape[1::-1])
            ]
            caption = f'mean IoU {about["mean_IoU"]:.1f}'
        else:
            names = [
                each if isinstance(each, str) else ', '.join(each) for each in (about['label'], about['prediction'])
            ]
            label, seen = (printable(each, MAX_NAME) or 'nothing' for each in names)
            caption = f'{label}, seen as {seen}' + (f' ({100 * about["score"]:.1f} %)' if 'score' in about else '')
        name = Path(about['file']).name if about['file'] else f'image {about["index"]}'
        return f'{printable(name, MAX_NAME)}: {caption}', image_address(np.concatenate(panels, axis=1))

    @torch.no_grad()
    def _masks(self, sample: dict, size: tuple[int, int]) -> list[np.ndarray]:
        """Return labels and prediction of an image at a size of width and height."""
        (found,) = self.model.test_step(pseudo_collate([sample]))
        maps = [each.data.squeeze().cpu().numpy().astype(np.uint16) for each in (found.gt_sem_seg, found.pred_sem_seg)]
        return [cv2.resize(each, size, interpolation=cv2.INTER_NEAREST) for each in maps]

    def _heat(self, sample: dict, height: int, width: int) -> np.ndarray:
        """Return the image with its heat map; the middle frame of a video."""
        seen, heat, _ = self.mapper.look(sample, self.is_bgr)
        if seen.ndim == 4:
            seen, heat = seen[len(seen) // 2], heat[len(heat) // 2]
        return glow(seen, heat[None])[0, :height, :width]


def _most_confused(shares: coo_array, names: list[str]) -> list[dict[str, Any]]:
    """Return the pairs of different classes with the largest shares of their labels."""
    found = [(share, *pair) for *pair, share in zip(*shares.coords, shares.data) if pair[0] != pair[1]]
    largest = nlargest(PAIRS, found, key=itemgetter(0))
    return [{'label': names[k], 'predicted': names[j], '% of the label': 100 * share} for share, k, j in largest]


def _change(row: dict[str, Any]) -> float:
    return -np.nan_to_num(abs(row['difference']), nan=-1)


def _shown(value: Any) -> str:
    """Return a value as a cell of a table."""
    if isinstance(value, str):
        return printable(value, MAX_NAME)
    if isinstance(value, (int, np.integer)):
        return f'{value:,}'
    return f'{value:.2f}' if np.isfinite(value) else '-'
