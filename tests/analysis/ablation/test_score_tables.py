"""Tables of scores from records: their rows, and where they are from."""

import json

import pytest

from vt.analysis.ablation.records import label_run
from vt.analysis.ablation.score_tables import describe, describe_origin

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
