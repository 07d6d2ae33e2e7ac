"""The moving digits: order alone tells the class; any one frame tells the twin's."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from vt.datasets import MovingDigits
from vt.datasets.digits import load_handwriting
from vt.datasets.moving_digits import MOTIONS
from vt.errors import UserError


def as_set(frames):
    return sorted(frame.tobytes() for frame in frames)


def rule(frames):
    """The class by hand: where the ink is in each frame, and where it goes."""
    frames = np.stack(frames)[..., 0].astype(float)
    ink = np.clip(frames - np.median(frames, axis=(1, 2), keepdims=True) - 30, 0, None)
    height, width = frames.shape[1:]
    upper = ink[:, : height // 2].sum((1, 2)) > ink[:, height // 2 :].sum((1, 2))
    columns = (ink.sum(1) * np.arange(width)).sum(1) / ink.sum((1, 2))
    directions = []
    for here in (upper, ~upper):
        steps = np.diff(columns[here])
        directions.append('right' if steps.sum() > 0 else 'left')
    return MOTIONS.index(('top' if upper[0] else 'bottom', tuple(directions)))


def accuracy(dataset):
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return np.mean([rule(info['frames']) == info['gt_label'] for info in infos])


@pytest.mark.parametrize(('num_frames', 'size'), [(8, 32), (16, 64), (8, 17), (8, 33)])
def test_a_video_is_the_same_every_time(num_frames, size):
    options = dict(num_videos=5, num_frames=num_frames, size=size)
    dataset, again = MovingDigits(**options), MovingDigits(**options)
    for index in range(5):
        info, other = dataset.get_data_info(index), again.get_data_info(index)
        assert np.array_equal(info['frames'], other['frames'])
        assert info['gt_label'] == other['gt_label'] == dataset.get_cat_ids(index)[0]
        assert np.stack(info['frames']).shape == (num_frames, size, size, 3)
        assert info['frames'][0].dtype == np.uint8
    assert not np.array_equal(info['frames'], MovingDigits(**options, seed=1).get_data_info(4)['frames'])


def test_the_class_puts_the_same_frames_in_another_order():
    """So neither a frame nor all of them without their order say anything of it."""
    dataset = MovingDigits(num_videos=1)
    tracks = dataset.compose(np.random.default_rng(0), digit=3)
    videos = [dataset.in_order(*tracks, motion) for motion in range(len(MOTIONS))]
    assert len({np.stack(video).tobytes() for video in videos}) == len(MOTIONS)
    assert all(as_set(video) == as_set(videos[0]) for video in videos)
    assert [rule(video) for video in videos] == list(range(len(MOTIONS)))


def test_order_tells_the_class_and_its_loss_loses_it():
    ordered = MovingDigits('test', num_videos=200)
    shuffled = MovingDigits('test', num_videos=200, shuffle_frames=True)
    assert accuracy(ordered) > 0.99
    assert accuracy(shuffled) < 0.25  # an eighth, and what 200 videos leave to chance
    for index in range(10):
        frames, others = (dataset.get_data_info(index)['frames'] for dataset in (ordered, shuffled))
        assert as_set(frames) == as_set(others)
        assert np.array_equal(others, shuffled.get_data_info(index)['frames'])


def test_the_twin_has_the_same_frames_and_the_digit_as_its_class():
    motion, digit = (MovingDigits(num_videos=300, task=task) for task in ('motion', 'digit'))
    for index in range(5):
        assert np.array_equal(motion.get_data_info(index)['frames'], digit.get_data_info(index)['frames'])
    assert (len(motion.metainfo['classes']), len(digit.metainfo['classes'])) == (8, 10)
    labels = motion.get_gt_labels(), digit.get_gt_labels()
    for found, number in zip(labels, (8, 10)):
        assert np.bincount(found, minlength=number).min() > 0.5 * 300 / number
    assert abs(np.corrcoef(*labels)[0, 1]) < 0.15
    inked = MovingDigits(num_videos=1, task='digit')
    inked.ink_by_digit = [np.full((5, 8, 8), kind == 4, np.float32) for kind in range(10)]
    with_ink, without = (
        [np.ptp(f) for track in inked.compose(np.random.default_rng(0), d) for f in track] for d in (4, 5)
    )
    assert min(with_ink) > max(without)


def test_the_last_hands_write_the_test():
    (train, labels), (test, others) = (load_handwriting(split, other_hands=True) for split in ('train', 'test'))
    assert (len(train), len(test)) == (1797 - 3 * 138, 2 * 138)
    images, _ = load_digits(return_X_y=True)
    assert np.array_equal(train[0], (images[0].reshape(8, 8) * 255 / 16).round())
    assert np.array_equal(test[-1], (images[-1].reshape(8, 8) * 255 / 16).round())
    assert np.bincount(labels).min() > 100
    assert np.bincount(others).min() > 20


def test_train_and_test_are_written_by_disjoint_hands():
    train, test = MovingDigits('train', num_videos=4), MovingDigits('test', num_videos=4)
    hands = [{ink.tobytes() for kind in dataset.ink_by_digit for ink in kind} for dataset in (train, test)]
    assert not hands[0] & hands[1]
    assert not np.array_equal(train.get_data_info(0)['frames'], test.get_data_info(0)['frames'])


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(split='val'), "split='val' is neither 'train' nor 'test'"),
        (dict(task='place'), "task='place' is none of motion, digit"),
        (dict(num_frames=7), 'num_frames=7 must be even'),
        (dict(size=8), 'size=8 must be at least 16'),
    ],
)
def test_wrong_settings(options, message):
    with pytest.raises(UserError, match=message):
        MovingDigits(**options)
