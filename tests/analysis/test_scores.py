"""Tables of scores from records: their rows, and where they are from."""

import json

import numpy as np
import pytest
from scipy.stats import t as student_t

from vt.analysis.scores import describe, describe_origin, describe_run, describe_sweep, label_run, pick_score
from vt.errors import UserError
from vt.files import write_json

ORIGIN = dict(date='2026-01-02', device='A CPU, 1 thread', versions=dict(torch='2.0'), length='10 epochs')


def record(label, seed, score, options=(), metric='accuracy/top1'):
    costs = dict(seconds=1800.0, iterations=10, batch_size=8, flops=77_400_000, parameters=2_620_000)
    config = dict(label=label, config=f'configs/room/{label}.py', options=dict(options), seed=seed)
    return config | costs | ORIGIN | dict(metrics={metric: score})


RECORDS = [record('plain', 1, 91.0), record('plain', 0, 90.0), record('norm', 0, 93.0), record('norm', 1, 92.0)]


def test_seeds_of_a_label_are_a_row_against_the_first():
    plain, norm = describe(RECORDS)
    assert plain == {
        'run': 'plain',
        'top-1 (%), each seed': '90.00, 91.00',
        'mean': '90.50',
        'change (95 %)': '',
        'MFLOPs': '77.4',
        'M params': '2.62',
    }
    assert (norm['run'], norm['mean']) == ('norm', '92.50')
    assert norm['change (95 %)'].startswith('+2.00 ± ')


def test_named_labels_are_the_rows_in_their_order():
    rows = describe([*RECORDS, record('other', 0, 10.0)], ['norm', 'plain'])
    assert [row['run'] for row in rows] == ['norm', 'plain']
    assert rows[1]['change (95 %)'].startswith('-2.00 ± ')
    with pytest.raises(ValueError, match=r"no records of 'none'; there are: norm, plain"):
        describe(RECORDS, ['none'])


def test_a_metric_of_ones_own_is_shown_but_not_compared_with_another():
    (row,) = describe([record('plain', 0, 50.0, metric='single-label/f1-score')])
    assert row['single-label/f1-score (%), each seed'] == '50.00'
    with pytest.raises(ValueError, match='mIoU and top-1 cannot be compared'):
        describe([*RECORDS, record('other', 0, 10.0, metric='mIoU')])


def test_a_seed_that_comes_twice_is_refused():
    with pytest.raises(ValueError, match=r"a seed of 'plain' occurs twice: give each run"):
        describe([*RECORDS, record('plain', 0, 50.0)])


@pytest.mark.parametrize(
    ('other', 'words'),
    [
        (dict(config='configs/b.py'), 'config'),
        (dict(length='90 epochs'), r'length \(90 epochs, 10 epochs\): give them other names'),
        (dict(metrics={'mIoU': 40.0}), 'metrics'),
    ],
)
def test_runs_of_a_label_have_one_config_length_and_metric(other, words):
    with pytest.raises(ValueError, match=f"the runs of 'plain' differ in {words}"):
        describe([RECORDS[0], RECORDS[1] | other])


def test_one_seed_has_no_interval():
    assert describe([record('plain', 0, 90.0), record('norm', 0, 92.0)])[1]['change (95 %)'] == '+2.00'


def test_where_numbers_are_from_is_told():
    later = [*RECORDS, RECORDS[0] | dict(seed=2, date='2026-01-05')]
    text = describe_origin(later)
    assert (
        text == 'Seeds 0, 1, 2; 2026-01-02 to 2026-01-05, A CPU, 1 thread, torch 2.0, 2.5 hours of training iterations.'
    )
    assert describe_origin([later[-1]]).startswith('Seed 2; 2026-01-05,')


def test_work_directories_name_the_rows(tmp_path):
    runs = [{key: value for key, value in run.items() if key != 'label'} for run in RECORDS[:2]]
    for run in runs:
        folder = tmp_path / f'a_b_seed-{run["seed"]}'
        folder.mkdir()
        (folder / 'training.json').write_text(json.dumps(run))
    found = [label_run(folder) for folder in sorted(tmp_path.iterdir())]
    assert found == [dict(run, label='a_b') for run in reversed(runs)]
    (folder / 'training.json').write_text(json.dumps(runs[0] | dict(metrics={})))
    with pytest.raises(ValueError, match='the run has no score; train it without --no-validate'):
        label_run(folder)
    (tmp_path / 'c_seed-0').mkdir()
    with pytest.raises(FileNotFoundError, match='train it first'):
        label_run(tmp_path / 'c_seed-0')


TRAINING = dict(config='configs/a/net_digits.py', metrics={'accuracy/top1': 97.5}, flops=10**9, parameters=10**6)
TRAINING |= dict(seconds=60.0)
TESTED = TRAINING | dict(metrics={'accuracy/top1': 98.25}, checkpoint='w/best_epoch_3.pth', throughput=100.0)


def test_scores_of_the_last_validation_and_of_a_tested_checkpoint_have_names_of_their_own(tmp_path):
    run = tmp_path / 'run'
    run.mkdir()
    write_json(TRAINING, run / 'training.json')
    row = describe_run(run)
    assert row['score of the last validation (%)'] == '97.50 top-1'
    assert (row['score in the test (%)'], row['tested'], row['images/s']) == ('', '', '')
    write_json(TESTED, tmp_path / 'run.benchmark.json')
    row = describe_run(run)
    assert row['score of the last validation (%)'] == '97.50 top-1'
    assert (row['score in the test (%)'], row['tested']) == ('98.25 top-1', 'best_epoch_3.pth')
    assert (row['images/s'], row['parameters (M)']) == ('100', '1.00')


def test_a_score_that_is_not_there_is_shown_as_such(tmp_path):
    write_json(TRAINING | dict(metrics={'mIoU': float('nan')}), tmp_path / 'training.json')
    assert describe_run(tmp_path)['score of the last validation (%)'] == 'nan mIoU'
    assert pick_score({'accuracy/top1': 1.0, 'mIoU': None}) == ('top-1', 1.0)


def test_runs_of_other_settings_are_refused():
    run, other = (dict(record('a', seed, 90.0), digest='1') for seed in (0, 1))
    beside = dict(record('b', 0, 90.0), digest='2')
    describe_sweep([run, other, beside | dict(config=run['config'])])
    with pytest.raises(UserError, match=r'the runs are of configs/room/a.py and configs/room/b.py: give each sweep'):
        describe_sweep([run, other, beside])
    describe_sweep([run, dict(run, digest='2', options=dict(fold=1))])
    with pytest.raises(UserError, match="the runs of 'a' differ in settings"):
        describe_sweep([run, other | dict(digest='2')])


def test_cells_of_what_was_not_measured_are_empty():
    """FLOPs of a sharded run, and seconds of one without a timer."""
    runs = [record('a', seed, 90.0 + seed) | dict(flops=None, seconds=None) for seed in (0, 1)]
    (row,) = describe_sweep(runs)
    assert (row['MFLOPs'], row['images/s in training'], row['M params']) == ('', '', '2.62')
    (row,) = describe_sweep([runs[0], runs[1] | dict(seconds=8.0)])
    assert row['images/s in training'] == '10'
    assert describe_origin(runs) == 'Seeds 0, 1; 2026-01-02, A CPU, 1 thread, torch 2.0.'


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
    first, second = describe_sweep(records)
    assert (first['run'], second['run']) == ('lr=0.1', 'lr=0.2')
    assert first['top-1 (%), each seed and fold'] == '90.00, 92.00, 97.00'
    rows = np.array([*scores.values()]).reshape(2, 3)
    margin = student_t.ppf(0.975, 4) * np.sqrt(rows.var(axis=1, ddof=1).mean() / 3)
    assert first['mean'] == f'93.00 ± {margin:.2f}'
    assert float(second['mean'].split(' ± ')[1]) == pytest.approx(margin, abs=0.005)
    (alone,) = describe_sweep([record | dict(label='b') for record in records[:1]])
    assert alone['mean'] == '90.00'


def test_folds_without_another_setting_are_named_by_their_config(tmp_path):
    (tmp_path / 'fold=3_seed-0').mkdir()
    own = dict(seed=0, options=dict(fold=3), metrics={'mIoU': 50.0}, flops=1, parameters=1, seconds=1.0, iterations=1)
    origin = dict(date='', device='', versions={}, length='10 epochs', config='a/b.py', batch_size=8)
    (tmp_path / 'fold=3_seed-0/training.json').write_text(json.dumps(own | origin))
    assert label_run(tmp_path / 'fold=3_seed-0')['label'] == 'b'
