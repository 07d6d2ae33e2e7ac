"""Scores class by class, against scikit-learn and literal definitions; as metrics of a validation they are the same."""

import json
import tracemalloc

import cv2
import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmpretrain.structures import DataSample
from sklearn import metrics
from tool_runner import ROOT, SMALL_CLASSIFIER, call, succeed

from vt.analysis.evaluation import (
    BAND,
    BINS,
    boundary_band,
    calibration,
    count_pairs,
    evaluate_segmentation,
    evaluate_several_labels,
    evaluate_single_label,
)
from vt.engine.hooks.curves import RESULTS, read_results
from vt.errors import UserError

NAMES = ('a', 'b', 'c', 'd')


def draw(seed, number=200):
    """Labels, of which none is d, and probabilities that lean to them."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=number)
    logits = random.normal(size=(number, 4)) + 1.5 * np.eye(4)[labels]
    return labels, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_scores_of_many_classes_take_no_memory_of_their_square():
    number, labels = 21_841, np.array([5, 21_840, 7, 7])
    scores = np.zeros((4, number), np.float32)
    scores[range(4), [5, 21_840, 7, 8]] = 1
    tracemalloc.start()
    found = evaluate_single_label(labels, scores, range(number))
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    rows, columns = found['confusions'].nonzero()
    assert [*zip(rows, columns)] == [(5, 5), (7, 7), (7, 8), (21_840, 21_840)]
    assert found['per_class'][7]['recall'] == 50
    assert found['metrics']['macro F1'] == pytest.approx(100 * (1 + 2 / 3 + 1) / 3)


@pytest.mark.parametrize('seed', [1, 9])
def test_single_labels_are_scored_as_by_scikit_learn(seed):
    labels, scores = draw(seed)
    scores = scores.round(seed)  # with one decimal, ties, of which the first class counts
    predicted, found = scores.argmax(axis=1), evaluate_single_label(labels, scores, NAMES)
    assert found['metrics']['top-1'] == pytest.approx(100 * metrics.accuracy_score(labels, predicted))
    ranked = np.argsort(-scores, axis=1, kind='stable')
    for k in (2, 3):
        assert found['metrics'][f'top-{k}'] == pytest.approx(
            100 * (ranked[:, :k] == labels[:, None]).any(axis=1).mean()
        )
    for name in ('precision', 'recall', 'f1'):
        macro = getattr(metrics, f'{name}_score')(labels, predicted, labels=[0, 1, 2], average='macro')
        assert found['metrics'][f'macro {name.replace("f", "F")}'] == pytest.approx(100 * macro)
    assert (found['confusions'].toarray() == metrics.confusion_matrix(labels, predicted, labels=range(4))).all()
    for label, row in enumerate(found['per_class']):
        has, told = labels == label, predicted == label
        assert (row['name'], row['samples'], row['predicted']) == (NAMES[label], has.sum(), told.sum())
        assert row['precision'] == pytest.approx(100 * (has & told).sum() / told.sum())
        recall = 100 * (has & told).sum() / has.sum() if has.any() else np.nan
        assert row['recall'] == pytest.approx(recall, nan_ok=True)


@pytest.mark.parametrize('seed', range(2))
def test_the_calibration_error_is_the_literal_sum_over_bins(seed):
    labels, scores = draw(seed)
    confidences, correct = scores.max(axis=1), scores.argmax(axis=1) == labels
    confidences[:9], confidences[9:18] = 1, 6 / BINS  # a bin holds its end
    expected = 0.0
    for index in range(BINS):
        members = [n for n, c in enumerate(confidences) if index / BINS < c <= (index + 1) / BINS]
        if members:
            accuracy = sum(correct[n] for n in members) / len(members)
            confidence = sum(confidences[n] for n in members) / len(members)
            expected += len(members) / len(labels) * abs(accuracy - confidence)
    ece, rows = calibration(confidences, correct)
    assert ece == pytest.approx(expected, abs=1e-12)
    assert sum(row['samples'] for row in rows) == len(labels)


def test_a_single_class_of_several_labels_is_that_class():
    """scikit-learn takes one column for a label of two values, whose first means that the class is absent."""
    labels, scores = np.arange(100)[:, None] < 30, np.where(np.arange(100) < 20, 0.9, 0.1)[:, None]
    (row,) = evaluate_several_labels(labels, scores, ['defect'])['per_class']
    assert (row['samples'], row['predicted'], row['precision'], row['F1']) == (30, 20, 100, pytest.approx(80))


def test_several_labels_are_scored_as_by_scikit_learn():
    random = np.random.default_rng(0)
    labels = random.random((80, 4)) < [0.5, 0.3, 0.1, 0]
    scores = np.clip(0.5 * random.random((80, 4)) + 0.5 * labels * random.random((80, 4)), 0, 1).round(1)  # some 0.5
    found = evaluate_several_labels(labels, scores, NAMES)
    means = [metrics.average_precision_score(labels[:, k], scores[:, k]) for k in range(3)]
    assert found['metrics']['mAP'] == pytest.approx(100 * np.mean(means))
    for k, row in enumerate(found['per_class'][:3]):
        assert row['F1'] == pytest.approx(100 * metrics.f1_score(labels[:, k], scores[:, k] >= 0.5))
        best = max(metrics.f1_score(labels[:, k], scores[:, k] >= threshold) for threshold in scores[:, k])
        assert row['best_F1'] == pytest.approx(100 * best)
        chosen = scores[:, k] >= row['best_threshold']
        assert metrics.f1_score(labels[:, k], chosen) == pytest.approx(best)
    assert np.isnan(found['per_class'][3]['AP'])


def test_segmentations_are_scored_by_pixels():
    random = np.random.default_rng(0)
    label, predicted = random.integers(3, size=(2, 500))
    found = evaluate_segmentation(count_pairs(label, predicted, 4), np.zeros((3, 4)), 0, NAMES)
    column = {name: [row[name] for row in found['per_class']] for name in found['per_class'][0]}
    iou = 100 * metrics.jaccard_score(label, predicted, labels=[0, 1, 2], average=None)
    assert column['IoU'] == pytest.approx([*iou, np.nan], nan_ok=True)
    recall = 100 * metrics.recall_score(label, predicted, average=None)
    assert column['accuracy'][:3] == pytest.approx(recall)
    expected = metrics.confusion_matrix(label, predicted, labels=range(4))
    assert (found['confusions'].toarray() == expected).all()
    assert (column['pixels'], column['predicted']) == (expected.sum(axis=1).tolist(), expected.sum(axis=0).tolist())


def their_band(mask, width):
    """Pixels of a binary mask that as many erosions as ``width`` take away, as Cheng et al. define and compute them."""
    framed = cv2.copyMakeBorder(mask.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    return mask & ~cv2.erode(framed, np.ones((3, 3), np.uint8), iterations=width)[1:-1, 1:-1].astype(bool)


@pytest.mark.parametrize('seed', range(4))
def test_boundary_iou_is_that_of_cheng_et_al_of_each_class(seed):
    random = np.random.default_rng(seed)
    shape = random.integers(1, 200, size=2)
    coarse = random.integers(3, size=(2, 9, 9)).astype(np.uint8)
    label, predicted = (cv2.resize(each, shape[::-1], interpolation=cv2.INTER_NEAREST).astype(int) for each in coarse)
    label[label == 2] = np.where(random.random(), 255, 2)  # pixels without a label, in half of the cases
    width = max(1, round(BAND * np.sqrt((shape**2).sum())))
    bands, valid = [boundary_band(each) for each in (label, predicted)], label != 255
    pairs = [(label == k, predicted == k) for k in range(3)]
    theirs = [[their_band(each, width) & valid for each in pair] for pair in pairs]
    for pair, expected in zip(pairs, theirs):
        assert all((band & each & valid == one).all() for band, each, one in zip(bands, pair, expected))
    counts = np.array([[ours.sum(), other.sum(), (ours & other).sum()] for ours, other in theirs]).T
    wrong = bands[0] & valid & (label != predicted)
    pairs = count_pairs(label[valid], predicted[valid], 3)
    found = evaluate_segmentation(pairs, counts, wrong.sum(), NAMES[:3])
    with np.errstate(invalid='ignore'):
        iou = np.array([(ours & other).sum() / (ours | other).sum() for ours, other in theirs])
        elsewhere = 100 * (label != predicted)[valid & ~bands[0]].mean() if (valid & ~bands[0]).any() else np.nan
    assert [row['boundary_IoU'] for row in found['per_class']] == pytest.approx(100 * iou, nan_ok=True)
    assert found['metrics']['mean boundary IoU'] == pytest.approx(100 * np.nanmean(iou))
    assert found['metrics']['wrong at boundaries'] == pytest.approx(100 * wrong.sum() / (bands[0] & valid).sum())
    assert found['metrics']['wrong elsewhere'] == pytest.approx(elsewhere, nan_ok=True)


def evaluate(metric, samples, batch=3):
    """By mmengine's evaluator, in batches."""
    evaluator = Evaluator([metric])
    evaluator.dataset_meta = dict(classes=NAMES[:3])
    for start in range(0, len(samples), batch):
        evaluator.process(samples[start : start + batch])
    return evaluator.evaluate(len(samples))


def test_metrics_of_one_label():
    random = np.random.default_rng(0)
    labels, scores = random.integers(2, size=20), random.dirichlet(np.ones(3), size=20)
    samples = [DataSample().set_gt_label(int(k)).set_pred_score(torch.tensor(s)) for k, s in zip(labels, scores)]
    found, expected = evaluate(dict(type='vt.ClassScores'), samples), evaluate_single_label(labels, scores, NAMES[:3])
    classes = {f'classes/F1/{row["name"]}': row['F1'] for row in expected['per_class'][:2]}  # no image is a c
    summary = {f'classes/{name.replace(" ", "_")}': value for name, value in expected['metrics'].items()}
    assert found == pytest.approx(summary | classes | {'classes/ECE': 100 * expected['ece']})
    sample = DataSample().set_gt_label(1).set_pred_score(torch.tensor([0.25, 0.5, 0.25]).bfloat16())
    assert evaluate(dict(type='vt.ClassScores'), [sample])['classes/top-1'] == 100


@pytest.mark.parametrize('several', [False, True])
def test_scores_that_are_nan_are_refused(several):
    samples = [DataSample().set_gt_label(1).set_pred_score(torch.tensor([0.2, 0.5, 0.3])) for _ in range(3)]
    samples[1].set_pred_score(torch.full((3,), torch.nan))
    with pytest.raises(UserError, match='scores are NaN or infinite for 1 of 3 images, such as '):
        evaluate(dict(type='vt.ClassScores', several_labels=several), samples)


def test_metrics_of_several_labels():
    random = np.random.default_rng(0)
    labels, scores = random.random((20, 3)) < 0.5, random.random((20, 3))
    samples = [
        DataSample().set_gt_label(torch.tensor(has.nonzero()[0])).set_pred_score(torch.tensor(score))
        for has, score in zip(labels, scores)
    ]
    found = evaluate(dict(type='vt.ClassScores', several_labels=True, prefix='x'), samples)
    expected = evaluate_several_labels(labels, scores, NAMES[:3])
    assert found['x/mAP'] == pytest.approx(expected['metrics']['mAP'])
    assert found['x/F1/c'] == pytest.approx(expected['per_class'][2]['F1'])


def test_metrics_are_in_the_record_of_a_run_and_in_a_tracker(tmp_path):
    evaluators = "val_evaluator=[{'type':'Accuracy'},{'type':'vt.ClassScores'}]"
    loss = ["custom_hooks=[{'type':'vt.ValidationLossHook'}]", 'default_hooks.checkpoint.save_best=val/loss']
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1', evaluators, *loss, 'default_hooks.logger.interval=1']
    config = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'
    succeed(call('train.py', config, '--work-dir', 'run', cwd=tmp_path, options=options))
    assert (tmp_path / 'run/best_val_loss_epoch_1.pth').exists()
    metrics = json.loads((tmp_path / 'run/training.json').read_text())['metrics']
    assert metrics['classes/top-1'] == pytest.approx(metrics['accuracy/top1'])
    (path,) = tmp_path.glob('run/*/vis_data/scalars.json')
    *losses, logged = map(json.loads, path.read_text().splitlines())
    assert logged['step'] == losses[-1]['step'] == len(losses)
    assert 0 < logged['val/loss'] < 10
    (row,) = read_results(tmp_path / 'run' / RESULTS)
    assert row['val/loss'] == pytest.approx(logged['val/loss'], rel=1e-5)
    assert {name: logged[name] for name in metrics} == pytest.approx(metrics)
    assert sum(name.startswith('classes/F1/') for name in metrics) >= 9


@pytest.mark.parametrize('ignored', [255, 2])
def test_metrics_of_masks(ignored):
    random = np.random.default_rng(0)
    labels, predicted = random.choice([0, 1, ignored], size=(2, 8, 9)), random.integers(2, size=(2, 8, 9))
    samples = [
        dict(gt_sem_seg=dict(data=torch.tensor(a)[None]), pred_sem_seg=dict(data=torch.tensor(b)[None]))
        for a, b in zip(labels, predicted)
    ]
    found, valid = evaluate(dict(type='vt.SegmentScores', ignore_index=ignored), samples), labels != ignored
    for k in range(2):
        both, either = (valid & (labels == k) & (predicted == k)), valid & ((labels == k) | (predicted == k))
        assert found[f'classes/IoU/{NAMES[k]}'] == pytest.approx(100 * both.sum() / either.sum())
    assert 'classes/IoU/c' not in found
    assert {'classes/mean_boundary_IoU', 'classes/wrong_at_boundaries'} <= found.keys()
