"""Runs beside the paper's ablations: what is read, how changes are judged, what the tables hold."""

import json

import pytest
from scipy.stats import ttest_ind

from docs.reports.ablations import ConfigScores, compare_with_paper, describe, draw, gather, read_records
from docs.reports.scores import tell_verdict
from vt.analysis.scores import compare
from vt.errors import UserError


def record(config, seed, score, metric='accuracy/top1'):
    costs = dict(length='10 epochs', flops=77_400_000, parameters=2_620_000)
    return dict(config=f'configs/{config}.py', options={}, seed=seed, metrics={metric: score}, **costs)


def write(folder, *records):
    paths = [folder / f'run{index}' for index in range(len(records))]
    for path, content in zip(paths, records):
        path.mkdir(parents=True)
        (path / 'training.json').write_text(json.dumps(content))
    return paths


RUNS = [
    record('vt_resnet/vt-resnet18-half_digits', 0, 90.0),
    record('vt_resnet/vt-resnet18-half_digits', 1, 91.0),
    record('ablations/table3_tokenizer/vt-resnet18-half_pooling_digits', 0, 85.0),
    record('ablations/table3_tokenizer/vt-resnet18-half_pooling_digits', 1, 86.5),
    record('baselines/resnet18-half_digits', 0, 90.2),
    record('ablations/table6_token_count/vt-resnet18-half_32-tokens_twin-digits', 0, 50.0),
]


@pytest.fixture(scope='module')
def tasks(tmp_path_factory):
    runs = write(tmp_path_factory.mktemp('runs'), *RUNS)
    return gather(read_records(runs))


@pytest.fixture(scope='module')
def tables(tasks):
    return compare_with_paper(tasks['digits, 10 epochs'])


def test_runs_of_one_config_are_one_row(tasks):
    assert set(tasks) == {'digits, 10 epochs', 'twin-digits, 10 epochs'}
    assert {(scores.config, scores.variant, scores.seeds) for scores in tasks['digits, 10 epochs']} == {
        ('vt-resnet18-half_digits', None, (0, 1)),
        ('vt-resnet18-half_pooling_digits', 'pooling', (0, 1)),
        ('resnet18-half_digits', None, (0,)),
    }


def test_a_table_needs_two_rows_and_the_papers_stand_beside(tasks, tables, tmp_path):
    assert compare_with_paper(tasks['twin-digits, 10 epochs']) == {}
    assert set(tables) == {2, 3}
    pooling, model = tables[3]
    assert (pooling['label'], pooling['paper']['score']) == ('tokenizer: pooling', 70.6)
    assert pooling['paper_change'] == pytest.approx(70.6 - 72.0)
    assert 'change' not in model
    baseline, vt = tables[2]
    assert [row['paper']['score'] for row in (baseline, vt)] == [69.9, 72.0]
    assert baseline['change'].points == pytest.approx(-0.3)
    segmentors = [record(f'{name}_r18_scenes', 0, 50.0 + len(name), 'mIoU') for name in ('fpn', 'vt-fpn')]
    (task,) = gather(read_records(write(tmp_path, *segmentors))).values()
    ((number, rows),) = compare_with_paper(task).items()
    assert (number, [row['paper']['score'] for row in rows]) == (9, [40.78, 41.0])


def test_rows_and_the_figure_hold_scores_costs_and_speed(tables):
    model, pooling = 'vt-resnet18-half_digits', 'vt-resnet18-half_pooling_digits'
    speeds = {(model, 'inference'): 2.0, (model, 'training'): 6.0}
    speeds |= {(pooling, 'inference'): 1.0, (pooling, 'training'): 8.0}
    pooling, model = describe(tables[3], speeds)
    assert pooling['top-1 (%), seeds'] == '85.75 ± 1.06 (2)'
    assert pooling['speed, inference / training'] == '2.00x / 0.75x'
    assert (model['MFLOPs'], model["paper's MFLOPs"]) == ('77.4', '1579')
    (axes,) = draw({'digits': tables}).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ['resnet18-half  (table 2)', 'tokenizer: pooling  (table 3)']


def scores(values, variant=None):
    rest = 'top-1', 1, 1, 'vt-resnet18', variant, 'digits', '10 epochs'
    return ConfigScores(tuple(range(len(values))), tuple(values), *rest)


@pytest.mark.parametrize(
    ('values', 'verdict'),
    [([80.0, 81.0, 80.5], 'worse'), ([99.0, 98.0], 'better'), ([90.4, 91.4], 'no clear difference')],
)
def test_the_interval_is_students_and_decides_the_verdict(values, verdict):
    """With two configs the pooled interval is the one of the two-sample t-test."""
    reference, variant = scores([90.0, 91.0]), scores(values, 'pooling')
    change = compare(variant, reference, [reference, variant])
    interval = ttest_ind(variant.scores, reference.scores).confidence_interval(0.95)
    found = change.points - change.margin, change.points + change.margin
    assert found == pytest.approx((interval.low, interval.high))
    assert tell_verdict(change) == verdict


def test_one_seed_tells_nothing_apart():
    reference, variant = scores([90.0]), scores([10.0], 'pooling')
    assert tell_verdict(compare(variant, reference, [reference, variant])) == 'no clear difference'


def test_what_is_wrong_with_runs_is_one_line(tmp_path):
    run = record('a_digits', 0, 1.0)
    for name, other, message in (
        ('twice', record('a_digits', 0, 2.0), 'a_digits.py, 10 epochs, seed 0: the run occurs twice'),
        ('no score', record('b_digits', 0, 1.0) | dict(metrics={}), 'the run has no score'),
        ('options', record('a_digits', 1, 2.0) | dict(options={'a.b': 0.1}), 'a_digits, 10 epochs: the runs differ in'),
    ):
        with pytest.raises(UserError, match=message):
            gather(read_records(write(tmp_path / name, run, other)))
