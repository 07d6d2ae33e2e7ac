"""Scores of classes as metrics of a validation: those of the report, in the record of a run and in its trackers."""

import json

import numpy as np
import pytest
import torch
from forked_tools import run_forked as run
from mmengine.evaluator import Evaluator
from mmpretrain.structures import DataSample
from tool_runner import ROOT, SMALL_CLASSIFIER

from vt.analysis.evaluation import evaluate_several_labels, evaluate_single_label
from vt.commands.evaluation_report import read_curves
from vt.errors import UserError

NAMES = ('cat', 'dog', 'emu')


def evaluate(metric, samples, batch=3):
    """By mmengine's evaluator, in batches."""
    evaluator = Evaluator([metric])
    evaluator.dataset_meta = dict(classes=NAMES)
    for start in range(0, len(samples), batch):
        evaluator.process(samples[start : start + batch])
    return evaluator.evaluate(len(samples))


def test_of_one_label():
    random = np.random.default_rng(0)
    labels, scores = random.integers(2, size=20), random.dirichlet(np.ones(3), size=20)
    samples = [DataSample().set_gt_label(int(k)).set_pred_score(torch.tensor(s)) for k, s in zip(labels, scores)]
    found, expected = evaluate(dict(type='vt.ClassScores'), samples), evaluate_single_label(labels, scores, NAMES)
    classes = {f'classes/F1/{row["name"]}': row['F1'] for row in expected['per_class'][:2]}  # no image is an emu
    summary = {f'classes/{name.replace(" ", "_")}': value for name, value in expected['metrics'].items()}
    assert found == pytest.approx(summary | classes | {'classes/ECE': 100 * expected['ece']})
    sample = DataSample().set_gt_label(1).set_pred_score(torch.tensor([0.25, 0.5, 0.25]).bfloat16())
    assert evaluate(dict(type='vt.ClassScores'), [sample])['classes/top-1'] == 100


@pytest.mark.parametrize('several', [False, True])
def test_of_scores_that_are_nan(several):
    samples = [DataSample().set_gt_label(1).set_pred_score(torch.tensor([0.2, 0.5, 0.3])) for _ in range(3)]
    samples[1].set_pred_score(torch.full((3,), torch.nan))
    with pytest.raises(UserError, match='scores are NaN or infinite for 1 of 3 images, such as '):
        evaluate(dict(type='vt.ClassScores', several_labels=several), samples)


def test_of_several_labels():
    random = np.random.default_rng(0)
    labels, scores = random.random((20, 3)) < 0.5, random.random((20, 3))
    samples = [
        DataSample().set_gt_label(torch.tensor(has.nonzero()[0])).set_pred_score(torch.tensor(score))
        for has, score in zip(labels, scores)
    ]
    found = evaluate(dict(type='vt.ClassScores', several_labels=True, prefix='x'), samples)
    expected = evaluate_several_labels(labels, scores, NAMES)
    assert found['x/mAP'] == pytest.approx(expected['metrics']['mAP'])
    assert found['x/F1/emu'] == pytest.approx(expected['per_class'][2]['F1'])


def test_in_the_record_of_a_run_and_in_a_tracker(tmp_path):
    evaluators = "val_evaluator=[{'type':'Accuracy'},{'type':'vt.ClassScores'}]"
    loss = ["custom_hooks=[{'type':'vt.ValidationLossHook'}]", 'default_hooks.checkpoint.save_best=val/loss']
    options = [*SMALL_CLASSIFIER, 'train_cfg.max_epochs=1', evaluators, *loss, 'default_hooks.logger.interval=1']
    config = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'
    result = run('train.py', config, '--work-dir', 'run', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'run/best_val_loss_epoch_1.pth').exists()
    metrics = json.loads((tmp_path / 'run/training.json').read_text())['metrics']
    assert metrics['classes/top-1'] == pytest.approx(metrics['accuracy/top1'])
    (path,) = tmp_path.glob('run/*/vis_data/scalars.json')
    *losses, logged = map(json.loads, path.read_text().splitlines())
    assert logged['step'] == losses[-1]['step'] == len(losses)
    assert 0 < logged['val/loss'] < 10
    assert read_curves(tmp_path / 'run')['val']['val/loss'] == [[len(losses), logged['val/loss']]]
    assert {name: logged[name] for name in metrics} == pytest.approx(metrics)
    assert sum(name.startswith('classes/F1/') for name in metrics) >= 9


def test_of_masks():
    random = np.random.default_rng(0)
    labels, predicted = random.choice([0, 1, 255], size=(2, 8, 9)), random.integers(2, size=(2, 8, 9))
    samples = [
        dict(gt_sem_seg=dict(data=torch.tensor(a)[None]), pred_sem_seg=dict(data=torch.tensor(b)[None]))
        for a, b in zip(labels, predicted)
    ]
    found, valid = evaluate(dict(type='vt.SegmentScores'), samples), labels != 255
    for k in range(2):
        both, either = (valid & (labels == k) & (predicted == k)), valid & ((labels == k) | (predicted == k))
        assert found[f'classes/IoU/{NAMES[k]}'] == pytest.approx(100 * both.sum() / either.sum())
    assert 'classes/IoU/emu' not in found
    assert {'classes/mean_boundary_IoU', 'classes/wrong_at_boundaries'} <= found.keys()
