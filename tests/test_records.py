"""The records in docs/records: short runs are repeated to the last bit, and what the records show holds."""

import json
import os
import subprocess
import sys
from collections import defaultdict

import pytest
from tool_runner import ROOT

from docs.reports import where

RECORDS = ROOT / 'docs/records'
SHORT = json.loads((RECORDS / 'repeat.json').read_text())


@pytest.mark.parametrize(
    'record',
    [
        pytest.param(record, id=record['label'], marks=[] if '-norm' in record['label'] else pytest.mark.slow)
        for record in SHORT
    ],
)
def test_a_short_run_repeats_its_record(record, tmp_path):
    """On the recorded processor and versions to the last bit; other processors round otherwise, and come near."""
    options = [f'{key}={value}' for key, value in record['options'].items()]
    command = [sys.executable, 'tools/train.py', record['config'], '--work-dir', str(tmp_path), '--cfg-options']
    result = subprocess.run(
        [*command, f'randomness.seed={record["seed"]}', *options],
        cwd=ROOT,
        env=os.environ | dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES=''),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / 'training.json').read_text())
    assert (found['flops'], found['parameters']) == (record['flops'], record['parameters'])
    (score,), (recorded,) = found['metrics'].values(), record['metrics'].values()
    assert score == pytest.approx(recorded, abs=10)
    if (found['device'], found['versions']) == (record['device'], record['versions']):
        assert (score, found['weights']) == (recorded, record['weights'])


def test_every_system_of_the_survey_learns_the_digits():
    records = json.loads((RECORDS / 'survey.json').read_text())
    assert len({record['label'] for record in records}) == 35
    assert min(record['metrics']['accuracy/top1'] for record in records) >= 95


def read_scores(table):
    """Scores of a table's rows, of each seed."""
    scores = defaultdict(list)
    for record in json.loads((RECORDS / f'{table}.json').read_text()):
        scores[record['label']].append(record['metrics']['accuracy/top1'])
    return scores


def read_means(table):
    """Mean scores of a table's rows."""
    return {label: sum(own) / len(own) for label, own in read_scores(table).items()}


def test_vt_behind_other_backbones_learns_the_digits():
    means = read_means('vt-anywhere')
    assert len(means) == 4
    assert min(means.values()) >= 98


@pytest.mark.skipif(not (RECORDS / 'moving-digits.json').is_file(), reason='the moving digits are not trained yet')
def test_order_tells_mvit_the_motion_and_its_loss_loses_it():
    means = read_means('moving-digits') | read_means('moving-digits-shuffled')
    motion, twin = 'mvit-tiny_moving-digits', 'mvit-tiny_moving-digits-twin'
    assert means[motion] >= 95
    assert means[f'{motion}_shuffled'] <= 12.5 + 5  # chance, and a little
    assert means[f'{twin}_shuffled'] >= 0.9 * means[twin]


def test_tokens_win_where_outlines_are_compared():
    """At no more FLOPs, by an interval that is clear of zero, which is bold."""
    curves = where.read_curves(json.loads((RECORDS / 'sample-efficiency.json').read_text()))
    recommended = curves['vt-resnet18-norm-half']
    assert recommended[4096].flops <= curves['resnet18-half'][4096].flops
    changes = {row['network']: row for row in where.tabulate_changes(curves)}['vt-resnet18-norm-half']
    assert all(changes[f'{number} images'].startswith('**+') for number in ('4,096', '65,536'))
    scores = read_scores('relations-svrt-7')
    learned = {label: sum(each > 85 for each in own) for label, own in scores.items()}
    assert learned['vt-resnet18-norm-half_svrt-7'] == 3 > learned['resnet18-half_svrt-7']
    means = read_means('relations-svrt-7')
    assert means['vt-resnet18-norm-half_svrt-7'] > means['resnet18-half_svrt-7'] + 10
