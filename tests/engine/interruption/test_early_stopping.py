"""Early stopping counts on after an interruption, and says what it cannot do."""

from engine.interruption.small_runs import checkpoints_in, log_of, train_small
from run_comparison import assert_same_end

COUNT = dict(type='vt.EarlyStoppingHook', monitor='score', rule='greater', patience=2)  # it never gets better
GOAL = COUNT | dict(stopping_threshold=-1)


def train(folder, stopping, epochs=6, **options):
    averages = dict(type='EMAHook', momentum=0.1)
    more = dict(wrapper=dict(accumulative_counts=2), checkpoint=dict(save_best='mean', rule='greater'))
    return train_small(folder, epochs, custom_hooks=[averages, stopping], **more | options)


def test_the_counter_is_restored_and_an_interrupted_run_ends_as_the_whole_one(tmp_path):
    """With accumulated gradients and averaged weights."""
    train(tmp_path / 'parts', COUNT, 2)
    assert train(tmp_path / 'parts', COUNT, resume=True).epoch == train(tmp_path / 'whole', COUNT).epoch == 3
    assert 'did not improve in the last 2 records' in log_of(tmp_path / 'parts')
    assert_same_end(tmp_path / 'whole', tmp_path / 'parts')


def test_what_was_trained_last_is_saved_and_a_run_that_has_ended_does_not_go_on(tmp_path):
    assert train(tmp_path, GOAL, checkpoint=dict(interval=10)).epoch == 1
    assert checkpoints_in(tmp_path) == ['epoch_1.pth']
    assert 'Stopping threshold reached' in log_of(tmp_path)
    assert train(tmp_path, GOAL, resume=True).epoch == 1
    words = 'the run was stopped early by score: raise patience or stopping_threshold to continue'
    assert words in log_of(tmp_path)
    assert train(tmp_path, COUNT, resume=True).epoch == 3
