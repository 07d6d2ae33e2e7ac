"""Runs of one label have the same settings; folds are one row."""

import json

import numpy as np
import pytest
from scipy.stats import t as student_t

from vt.analysis.ablation.records import label_run
from vt.analysis.ablation.sweep_report import check_settings, tabulate
from vt.errors import UserError


@pytest.mark.parametrize(
    ('change', 'words'),
    [(dict(digest='2'), "the runs of 'a' differ in settings"), (dict(config='d.py'), 'the runs are of c.py and d.py')],
)
def test_runs_of_other_settings_are_refused(change, words):
    run = dict(label='a', config='c.py', digest='1', options={}, seed=0)
    check_settings([run, run | dict(seed=1), run | dict(label='b', digest='2')])
    check_settings([run, run | dict(digest='2', options=dict(fold=1))])
    with pytest.raises(UserError, match=words):
        check_settings([run, run | dict(seed=1) | change])


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
