"""Rows of finished runs: a score says which weights it is of."""

from vt.analysis.ablation.records import describe_run, pick_score
from vt.commands.outputs import write_json

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
