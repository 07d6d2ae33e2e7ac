"""Runs of one label and of other settings stand in rows of their own."""

import json

import numpy as np
import pytest
from scipy.stats import t as student_t

from vt.analysis.ablation.score_tables import label_run
from vt.analysis.ablation.sweep_report import tabulate, tell_apart


def labels(*runs):
    records = [dict(label=label, digest=digest, options=options, seed=0) for label, digest, options in runs]
    return [record['label'] for record in tell_apart(records)]


def test_runs_of_the_same_settings_keep_their_label():
    assert labels(('a', '1' * 32, {}), ('b', '2' * 32, {})) == ['a', 'b']


def test_a_seed_that_was_trained_twice_is_a_row_of_its_own():
    assert labels(('a', '1' * 32, {}), ('a', '1' * 32, {}), ('b', '2' * 32, {})) == ['a', 'a again', 'b']


def test_others_are_told_apart_by_what_differs_and_by_digest():
    runs = [('a', '1' * 32, dict(x=1, y=2)), ('a', '2' * 32, dict(x=1, y=3)), ('a', '3' * 32, dict(x=1))]
    assert labels(*runs, ('b', '4' * 32, {})) == [
        'a (y=2, 11111111)',
        'a (y=3, 22222222)',
        'a (y=as in the config, 33333333)',
        'b',
    ]


def test_an_edited_config_and_an_earlier_version_are_told_apart():
    assert labels(('a', '1' * 32, {}), ('a', '2' * 32, {}), ('a', None, {})) == [
        'a (11111111)',
        'a (22222222)',
        'a (no digest)',
    ]


def test_folds_are_one_row_with_the_interval_of_their_mean(tmp_path):
    scores = dict(zip([(lr, fold) for lr in (0.1, 0.2) for fold in range(3)], (90.0, 92.0, 97.0, 80.0, 84.0, 85.0)))
    costs = dict(flops=1, parameters=1, seconds=1.0, iterations=10, batch_size=8)
    origin = dict(date='2026-01-02', device='A CPU', versions=dict(torch='2.0'), length='10 epochs', config='a/b.py')
    records = []
    for (lr, fold), score in scores.items():
        folder = tmp_path / f'lr={lr}_fold={fold}_seed-0'
        folder.mkdir()
        own = dict(seed=0, options=dict(lr=lr, fold=fold), digest=f'{lr}{fold}', metrics={'accuracy/top1': score})
        (folder / 'training.json').write_text(json.dumps(own | costs | origin))
        records.append(label_run(folder))
    first, second = tabulate(records)
    assert (first['run'], second['run']) == ('lr=0.1', 'lr=0.2')
    assert first['top-1 (%), each seed and fold'] == '90.00, 92.00, 97.00'
    rows = np.array([*scores.values()]).reshape(2, 3)
    margin = student_t.ppf(0.975, 4) * np.sqrt(rows.var(axis=1, ddof=1).mean() / 3)
    assert first['mean'] == f'93.00 ± {margin:.2f}'
    assert float(second['mean'].split(' ± ')[1]) == pytest.approx(margin, abs=0.005)
    (alone,) = tabulate([record | dict(label='b') for record in records[:1]])
    assert alone['mean'] == '90.00'


def test_folds_without_another_setting_are_named_by_their_config(tmp_path):
    (tmp_path / 'fold=3_seed-0').mkdir()
    own = dict(seed=0, options=dict(fold=3), metrics={'mIoU': 50.0}, flops=1, parameters=1, seconds=1.0, iterations=1)
    origin = dict(date='', device='', versions={}, length='10 epochs', config='a/b.py', batch_size=8)
    (tmp_path / 'fold=3_seed-0/training.json').write_text(json.dumps(own | origin))
    assert label_run(tmp_path / 'fold=3_seed-0')['label'] == 'b'
