"""Tables of scores from records: their rows, where they are from, and how they are printed."""

import json
import re

import numpy as np
import pytest
from scipy.stats import t as student_t

from vt.analysis.scores import (
    describe,
    describe_origin,
    describe_runs,
    describe_sweep,
    label_run,
    pick_score,
    read_each,
    read_run,
)
from vt.errors import UserError
from vt.files import write_json

ORIGIN = dict(date='2026-01-02', device='A CPU, 1 thread', versions=dict(torch='2.0'), length='10 epochs')


def record(label, seed, score, options=(), metric='accuracy/top1'):
    costs = dict(seconds=1800.0, iterations=10, batch_size=8, flops=77_400_000, parameters=2_620_000)
    config = dict(label=label, config=f'configs/room/{label}.py', options=dict(options), seed=seed)
    return config | costs | ORIGIN | dict(metrics={metric: score})


RECORDS = [record('plain', 1, 91.0), record('plain', 0, 90.0), record('norm', 0, 93.0), record('norm', 1, 92.0)]
OTHER = record('other', 0, 10.0)


def write_run(folder, content):
    folder.mkdir(exist_ok=True)
    write_json({key: value for key, value in content.items() if key != 'label'}, folder / 'training.json')
    return folder


def test_seeds_of_a_label_are_a_row_against_the_first():
    plain, norm = describe(RECORDS)
    assert [*plain] == ['run', 'top-1 (%), each seed', 'mean', 'change (95 %)', 'MFLOPs', 'M params']
    assert [*plain.values()] == ['plain', '90.00, 91.00', '90.50', '', '77.4', '2.62']
    assert (norm['run'], norm['mean']) == ('norm', '92.50')
    assert norm['change (95 %)'].startswith('+2.00 ± ')
    change = describe([*RECORDS, record('norm', 2, 91.0)])[1]['change (95 %)']
    pooled, factor = (0.5 + 2) / 3, 1 / 2 + 1 / 3  # variances of 2 and of 3 seeds, with 3 degrees of freedom
    assert change == f'+1.50 ± {student_t.ppf(0.975, 3) * np.sqrt(pooled * factor):.2f}'
    named = describe([*RECORDS, OTHER], ['norm', 'plain'])
    assert [row['run'] for row in named] == ['norm', 'plain']
    assert named[1]['change (95 %)'].startswith('-2.00 ± ')
    assert describe([RECORDS[1], RECORDS[2]])[1]['change (95 %)'] == '+3.00'  # one seed has no interval
    (row,) = describe([record('plain', 0, 50.0, metric='single-label/f1-score')])
    assert row['single-label/f1-score (%), each seed'] == '50.00'


@pytest.mark.parametrize(
    ('added', 'labels', 'words'),
    [
        (OTHER, ['none'], r"no records of 'none'; labels are norm, other, plain"),
        (record('other', 0, 10.0, metric='mIoU'), [], 'mIoU and top-1 cannot be compared'),
        (record('plain', 0, 50.0), [], r"'plain' has two runs with the same seed: give each run"),
        (record('plain', 2, 50.0) | dict(config='b.py'), [], "the runs of 'plain' differ in config"),
        (record('plain', 2, 50.0) | dict(length='90 epochs'), [], r'length \(10 epochs, 90 epochs\): give them other'),
    ],
)
def test_runs_that_make_no_table_are_refused(added, labels, words):
    with pytest.raises(ValueError, match=words):
        describe([*RECORDS, added], labels)


def test_where_numbers_are_from_is_told():
    last = RECORDS[0] | dict(seed=2, date='2026-01-05')
    assert describe_origin([*RECORDS, last]) == (
        'Seeds 0, 1, 2; 2026-01-02 to 2026-01-05, A CPU, 1 thread, torch 2.0, 2.5 hours of training iterations.'
    )


def test_work_directories_name_the_rows(tmp_path):
    folders = [write_run(tmp_path / f'a_b_seed-{run["seed"]}', run) for run in RECORDS[:2]]
    assert [label_run(folder) for folder in folders] == [dict(run, label='a_b') for run in RECORDS[:2]]
    write_run(folders[0], RECORDS[0] | dict(metrics={}))
    with pytest.raises(ValueError, match='the run has no score; train it without --no-validate'):
        label_run(folders[0])
    with pytest.raises(FileNotFoundError, match='train it first'):
        label_run(tmp_path / 'c_seed-0')


def test_scores_of_the_last_validation_and_of_a_tested_checkpoint_have_names_of_their_own(tmp_path):
    run = write_run(tmp_path / 'run', RECORDS[0])
    (row,) = describe_runs([read_run(run)])
    assert row['score of the last validation (%)'] == '91.00 top-1'
    assert (row['score in the test (%)'], row['tested'], row['images/s']) == ('', '', '')
    tested = dict(metrics={'accuracy/top1': 98.25}, checkpoint='w/best_epoch_3.pth', throughput=100.0)
    write_json(RECORDS[0] | tested, tmp_path / 'run.benchmark.json')
    (row,) = describe_runs([read_run(run)])
    assert (row['score in the test (%)'], row['tested']) == ('98.25 top-1', 'best_epoch_3.pth')
    assert (row['images/s'], row['parameters (M)']) == ('100', '2.62')
    (row,) = describe_runs([read_run(write_run(tmp_path / 'nan', record('a', 0, float('nan'), metric='mIoU')))])
    assert row['score of the last validation (%)'] == 'nan mIoU'
    assert pick_score({'accuracy/top1': 1.0, 'mIoU': None}) == ('top-1', 1.0)


def test_runs_of_one_name_are_told_apart_by_what_differs(tmp_path):
    same, lr = {'model.drop': 0.1}, 'optim_wrapper.optimizer.lr'
    options = [same, same | {lr: 0.1}, same | {lr: 0.2, 'a.type': 'A', 'b.type': 'B'}, same]
    runs = [record('timm:net', 0, 90.0, each) | dict(config='timm:net') for each in options]
    runs += [runs[0] | dict(seed=1), record('other', 0, 90.0)]
    folders = [write_run(tmp_path / str(number), run) for number, run in enumerate(runs)]
    names = [row['model'] for row in describe_runs([*map(read_run, folders)])]
    expected = [f'timm:net, seed=0{more} ({{}})' for more in ('', f', {lr}=0.1', f', {lr}=0.2, a.type=A, b.type=B', '')]
    expected += ['timm:net, seed=1 ({})', 'other']
    assert names == [name.format(folder) for name, folder in zip(expected, folders)]


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (lambda path: path.mkdir(), r'could not be read \(Is a directory\)'),
        ('[' * 10**5, 'is damaged: RecursionError'),
        ('null', 'is damaged: content is None, not dict'),
        ({'seed': '1'}, "is damaged: seed in content is '1', not int; train it first"),
        ({'seconds': 10**400}, 'seconds in content is 1000'),
        ({'options': None}, 'options in content is None, not dict'),
        ({'metrics': {'accuracy/top1': [1]}}, r'accuracy/top1 in metrics in content is \[1\], not int | float | None'),
        ({'versions': {'torch': 2}}, 'torch in versions in content is 2, not str'),
    ],
)
def test_records_made_by_hand_are_one_line(content, words, tmp_path):
    if callable(content):
        content(tmp_path / 'training.json')
    else:
        text = content if isinstance(content, str) else json.dumps(RECORDS[0] | content)
        (tmp_path / 'training.json').write_text(text)
    for read in (read_run, label_run):
        found, (line,) = read_each(read, [tmp_path])
        assert not found
        assert re.search(words, line)


def test_runs_of_other_settings_are_refused():
    run, other = (record('a', seed, 90.0) | dict(digest='1') for seed in (0, 1))
    beside = record('b', 0, 90.0) | dict(digest='2')
    describe_sweep([run, other, beside | dict(config=run['config'])])
    describe_sweep([run, run | dict(digest='2', options=dict(fold=1))])
    with pytest.raises(UserError, match=r'the runs are of configs/room/a.py and configs/room/b.py: give each sweep'):
        describe_sweep([run, beside])
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
    scores = np.array([[90.0, 92.0, 97.0], [80.0, 84.0, 85.0]])
    records = []
    for lr, of_folds in zip((0.1, 0.2), scores.tolist()):
        for fold, score in enumerate(of_folds):
            run = record('any', 0, score, dict(lr=lr, fold=fold)) | dict(digest=f'{lr}{fold}')
            records.append(label_run(write_run(tmp_path / f'lr={lr}_fold={fold}_seed-0', run)))
    first, second = describe_sweep(records)
    assert (first['run'], second['run']) == ('lr=0.1', 'lr=0.2')
    assert first['top-1 (%), each seed and fold'] == '90.00, 92.00, 97.00'
    margin = student_t.ppf(0.975, 4) * np.sqrt(scores.var(axis=1, ddof=1).mean() / 3)
    assert first['mean'] == f'93.00 ± {margin:.2f}'
    assert float(second['mean'].split(' ± ')[1]) == pytest.approx(margin, abs=0.005)
    (alone,) = describe_sweep([records[0] | dict(label='b')])
    assert alone['mean'] == '90.00'
    folder = write_run(tmp_path / 'fold=3_seed-0', record('net_digits', 0, 50.0, dict(fold=3)))
    assert label_run(folder)['label'] == 'net_digits'  # without another setting that of the config
