"""The report of ``vt test --report FOLDER``: scores of each class and images, as a page and as JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import joblib
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmpretrain.models import MultiLabelClsHead
from scipy.sparse import coo_array
from scipy.stats import binomtest
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.preprocessing import normalize

from vt.analysis.attention.heat_maps import HeatMapper
from vt.analysis.attention.token_figure import SCALE, glow, times_uniform
from vt.analysis.evaluation import (
    BAND,
    BINS,
    MapCollector,
    PredictionCollector,
    evaluate_segmentation,
    evaluate_several_labels,
    evaluate_single_label,
    iou_of,
    mean_of,
    stack_predictions,
    sum_maps,
)
from vt.analysis.figures import figure_address, image_address, shrink
from vt.checkpoints.weights import unwrap
from vt.engine.config.parts import is_segmentation, preparation_of
from vt.engine.hooks.curves import RESULTS, draw_curves, read_results
from vt.engine.hooks.dry_run import is_number
from vt.engine.hooks.num_classes import IGNORED_LABEL, has_labels, without_wrappers
from vt.engine.hooks.visualization import colour, visible
from vt.engine.run.record import describe_origin
from vt.errors import UserError
from vt.files import NUMBER, read_json, write_atomically, write_json
from vt.pages import render
from vt.untrusted_text import composed, printable

from .data_page import ROWS

SIDE = 160  # of an image on the page, in pixels
IMAGES, PAIRS = 24, 20  # images of each kind and pairs of classes on the page
MOST_DRAWN, NAMED, COUNTED = 1000, 60, 20  # most classes of a confusion matrix on the page, with names, with shares
EARLIER = dict(  # what a report is compared by
    checkpoint=str,
    images=int,
    classes=list,
    per_class=[dict(F1=NUMBER, IoU=NUMBER)],
    image_scores=[NUMBER],
    labels_digest=str,
)
HINT = 'give the folder of an earlier --report of the same test set'


class Report(Hook):
    """Write a report of a test: ``report.html`` and ``report.json``.

    Args:
        folder: folder to write to.
        compare: folder of an earlier report of the same test set, to compare with.
        heat_maps: method of heat maps of the images.

    Raises:
        UserError: there is no earlier report.
    """

    def __init__(self, folder: str, compare: str | None = None, heat_maps: str | None = None) -> None:
        self.folder, self.method = Path(folder), heat_maps
        path = Path(compare or '', 'report.json')
        self.earlier = None if compare is None else read_json(path, HINT, keys=[*EARLIER], shape=EARLIER)

    def before_test(self, runner: Runner) -> None:
        """Collect predictions of the test.

        Raises:
            UserError: the images have no labels, or are not tested in the order of the data set; there is no such
                method; the earlier report has another number of images.
        """
        self.runner, self.model = runner, unwrap(runner.model)
        self.dataset, evaluator = runner.test_dataloader.dataset, runner.test_evaluator
        if getattr(runner.test_dataloader.sampler, 'shuffle', False):
            raise UserError('--report requires images in order: set test_dataloader.sampler.shuffle=False')
        if is_segmentation(runner.cfg):
            ignored = [metric.ignore_index for metric in evaluator.metrics if hasattr(metric, 'ignore_index')]
            usual = getattr(without_wrappers(self.dataset), 'ignore_index', IGNORED_LABEL)
            ignore_index = ignored[0] if ignored else usual
            self.collector = MapCollector(ignore_index, prefix='report')
        elif has_labels(self.dataset):
            self.collector = PredictionCollector(prefix='report')
        else:
            raise UserError('--report requires labels, and the test images have none')
        self.collector.dataset_meta = evaluator.dataset_meta
        evaluator.metrics.append(self.collector)
        self.mapper = HeatMapper(self.model, self.method) if self.method else None
        if self.earlier and self.earlier['images'] != len(self.dataset):
            numbers = f'has {self.earlier["images"]} images, this test has {len(self.dataset)}'
            raise UserError(f'--compare: the report of {self.earlier["checkpoint"]} {numbers}; {HINT}')
        results = Path(runner.cfg.load_from).parent / RESULTS
        self.curves = read_results(results) if results.is_file() else []
        if is_main_process():
            self.folder.mkdir(parents=True, exist_ok=True)  # errors appear before the test

    def after_test_epoch(self, runner: Runner, metrics: dict[str, Any] | None = None) -> None:
        """Keep the numbers of the evaluator."""
        self.metrics = {name: float(value) for name, value in (metrics or {}).items() if is_number(value)}

    def after_test(self, runner: Runner) -> None:
        """Write the report, when other hooks have restored the model."""
        if is_main_process():
            self._write(runner.cfg, self.metrics)

    def _write(self, cfg: Config, metrics: dict[str, float]) -> None:
        results, maps = self.collector.collected, isinstance(self.collector, MapCollector)
        names = (self.collector.dataset_meta or {}).get('classes') or range(len(results[0]['pred_score']))
        names, key = [str(name) for name in names], 'IoU' if maps else 'F1'
        several = isinstance(getattr(self.model, 'head', None), MultiLabelClsHead)
        found, ranked = _segmentation(results, names) if maps else _classification(results, names, several)
        record: dict[str, Any] = dict(config=cfg.filename, checkpoint=cfg.load_from, images=len(results), classes=names)
        record |= found | ranked | dict(metrics=metrics | found['metrics'], curves=self.curves)
        named = {_plain(name) for name in metrics}  # of the config, which the page shows once
        own = {name: value for name, value in found['metrics'].items() if _plain(name) not in named}
        page: dict[str, Any] = dict(
            metrics=metrics | own, key=key, band=BAND, bins=BINS, rows=ROWS, per_class=_sort(found['per_class'], key)
        )
        if 'confusions' in found:
            pairs = found['confusions'].tocoo()
            record['confusions'] = np.stack([*pairs.coords, pairs.data], axis=1)
            shares = 100 * normalize(pairs, 'l1')  # of each label
            page['pairs'] = _most_confused(shares.tocoo(), names)
            if len(names) <= MOST_DRAWN:
                page['confusion_matrix'] = figure_address(draw_confusion(shares.toarray(), names))
        if 'reliability' in found:
            page['reliability_diagram'] = figure_address(draw_reliability(found['reliability']))
        if self.curves:
            page['training_curves'] = figure_address(draw_curves({'': self.curves}))
        if self.earlier:
            record['comparison'] = compare_reports(record, self.earlier, key)
            page['changes'] = _sort(record['comparison']['per_class'], 'difference', lambda each: -abs(each))
        write_json(describe_origin(next(self.model.parameters()).device) | record, self.folder / 'report.json', None)
        page['sheets'] = {title: [(each, self._draw(each)) for each in images] for title, images in ranked.items()}
        page |= dict(side=((3 if maps else 1) + bool(self.mapper)) * SIDE, mapper=self.mapper, scale=SCALE)
        write_atomically(self.folder / 'report.html', render('commands/evaluation_report.html.j2', **record | page))
        print(f'written to {self.folder / "report.html"}')

    def _draw(self, about: dict[str, Any]) -> str:
        """Return the data URL of an image; of a segmentor with labels and prediction beside it."""
        sample, is_bgr = self.dataset[about['index']], preparation_of(self.runner.cfg).is_bgr
        inputs = sample['inputs']
        while isinstance(inputs, list) or inputs.ndim == 5:  # test-time augmentation, clips of a video
            inputs = inputs[0]
        image = visible(inputs if inputs.ndim == 3 else inputs[:, inputs.shape[1] // 2], is_bgr)
        panels = [shrink(image, SIDE)]
        if 'mean_IoU' in about:
            model: Any = self.runner.model
            with torch.no_grad():
                (found,) = model.test_step(pseudo_collate([sample]))
            size, palette = panels[0].shape[1::-1], self.dataset.metainfo.get('palette')
            for each in (found.gt_sem_seg, found.pred_sem_seg):
                mask = each.data.squeeze().cpu().numpy().astype(np.uint16)
                mask = cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST)
                panels.append(colour(panels[0], mask, palette))
        if self.mapper:
            try:
                seen, heat, _ = self.mapper.look(sample, is_bgr)
                if seen.ndim == 4:  # the middle frame of a video
                    seen, heat = seen[len(seen) // 2], heat[len(heat) // 2]
                drawn = glow(seen, times_uniform(heat[None]))[0, : image.shape[0], : image.shape[1]]
                panels.append(shrink(drawn, SIDE))
            except UserError as error:  # the model has no heat maps; the report is written without them
                print(f'no heat maps: {error}')
                self.mapper = None
        return image_address(np.concatenate(panels, axis=1))


def _classification(results: list[dict], names: list[str], several: bool) -> tuple[dict, dict[str, list[dict]]]:
    """Return metrics, and the images with the highest loss and with the smallest lead of the best class."""
    labels, scores = stack_predictions(results, several)
    if several:
        found, certainty = evaluate_several_labels(labels, scores, names), np.where(labels, scores, 1 - scores)
        loss, lead = -np.log(np.maximum(certainty, 1e-12)).sum(axis=1), np.abs(scores - 0.5).min(axis=1)
        right = (labels == (scores >= 0.5)).mean(axis=1)
    else:
        found, right = evaluate_single_label(labels, scores, names), (labels == scores.argmax(axis=1)).astype(int)
        loss = -scores[np.arange(len(labels)), labels]
        lead = np.diff(np.partition(scores, -2)[:, -2:])[:, 0] if len(names) > 1 else scores[:, 0]

    def describe(index: int) -> dict[str, Any]:
        about, score = dict(index=index, file=results[index]['file']), scores[index]
        if several:
            chosen = [[names[k] for k in np.flatnonzero(each)] for each in (labels[index], score >= 0.5)]
            return about | dict(label=chosen[0], prediction=chosen[1])
        label, best = labels[index], score.argmax()
        return about | dict(label=names[label], prediction=names[best], score=score[best], score_of_label=score[label])

    found |= dict(image_scores=right, labels_digest=joblib.hash([result['gt_label'].tolist() for result in results]))
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


def _plain(name: str) -> str:
    """Return the name of a metric as other libraries may spell it: ``top1`` of ``accuracy/top1`` and of ``top-1``."""
    return ''.join(filter(str.isalnum, name.rpartition('/')[2])).lower()


def _sort(rows: list[dict[str, Any]], key: str, order: Callable = lambda each: each) -> list[dict[str, Any]]:
    """Sort rows by a value; those without it are last."""
    return sorted(rows, key=lambda row: np.nan_to_num(order(row[key]), nan=np.inf))


def _most_confused(shares: coo_array, names: list[str]) -> list[dict[str, Any]]:
    """Return the pairs of different classes with the largest shares of their labels."""
    order = [k for k in np.argsort(-shares.data, kind='stable') if shares.row[k] != shares.col[k]]
    return [
        {'label': names[shares.row[k]], 'predicted': names[shares.col[k]], '% of the label': shares.data[k]}
        for k in order[:PAIRS]
    ]


def compare_reports(record: dict[str, Any], other: dict[str, Any], key: str) -> dict:
    """Compare a report with an earlier one: the score ``key`` of each class, and the scores of images.

    Returns:
        ``checkpoint`` of the earlier report; on how many images this one is ``better`` and ``worse``, and ``p``,
        two-sided, by McNemar's exact test, or of other scores than right or wrong by the sign test; ``per_class``.

    Raises:
        UserError: the earlier report has other images or classes, or is damaged.
    """
    classes = [[composed(str(name)) for name in each['classes']] for each in (record, other)]
    if record['labels_digest'] != other['labels_digest'] or classes[0] != classes[1]:
        raise UserError(f'--compare: the report of {other["checkpoint"]} has other images or classes; {HINT}')
    try:
        ours, theirs = (np.array(each['image_scores'], float) for each in (record, other))
        before = np.array([row[key] for row in other['per_class']], float)
        rows = [
            dict(name=row['name'], other=earlier, this=row[key], difference=row[key] - earlier)
            for row, earlier in zip(record['per_class'], before, strict=True)
        ]
        better, worse = int((ours > theirs).sum()), int((ours < theirs).sum())
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UserError(f'--compare: the report of {other["checkpoint"]} is damaged; {HINT}') from error
    p = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    return dict(checkpoint=str(other['checkpoint']), better=better, worse=worse, p=p, per_class=rows)


def draw_confusion(shares: np.ndarray, names: list[str]) -> Figure:
    """Draw a matrix ``(C, C)`` of percentages of its rows, the labels, that are predicted as each class."""
    side = min(12.0, max(4.0, 2 + 0.35 * len(names)))
    figure = Figure(figsize=(side + 1, side), layout='constrained')
    axes = figure.subplots()
    matrix = ConfusionMatrixDisplay(shares, display_labels=[_label(name, 40) for name in names])
    options = dict(cmap='Blues', values_format='.0f', xticks_rotation='vertical')
    styles = dict(im_kw=dict(vmin=0, vmax=100), text_kw=dict(fontsize=7))
    matrix.plot(ax=axes, include_values=len(names) <= COUNTED, **options, **styles)
    axes.tick_params(labelsize=7)
    if len(names) > NAMED:
        axes.set(xticks=[], yticks=[])
    return figure


def draw_reliability(rows: list[dict[str, float]]) -> Figure:
    """Draw the accuracy of each bin against its confidence, and the number of images per bin."""
    figure = Figure(figsize=(9, 3.6), layout='constrained')
    left, right = figure.subplots(1, 2)
    used = [row for row in rows if row['samples']]
    left.plot([0, 1], [0, 1], color='grey', linestyle='--', label='calibrated')
    left.plot([row['confidence'] for row in used], [row['accuracy'] for row in used], marker='o', label='this model')
    left.set(xlabel='confidence', ylabel='accuracy', xlim=(0, 1), ylim=(0, 1.02))
    left.legend()
    right.bar([row['above'] for row in rows], [row['samples'] for row in rows], 1 / BINS, align='edge')
    right.set(xlabel='confidence', ylabel='images', xlim=(0, 1))
    return figure


def _label(name: str, width: int) -> str:
    """Return a name as text of a figure, without formulas."""
    return printable(name, width).replace('$', r'\$')
