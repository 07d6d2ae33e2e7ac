"""Data sets of scikit-learn's digits: fixed by seed, split and index, and what their labels mean."""

import cv2
import numpy as np
import pytest
from sklearn.datasets import load_digits

from vt.datasets import Digits, DigitScenes, MovingDigits
from vt.datasets.digit_scenes import DIGIT_SIZES, SIZE
from vt.datasets.digits import load_handwriting
from vt.datasets.moving_digits import MOTIONS
from vt.errors import UserError

# Of a data set the option that is its seed, what a sample holds, and what packs it to which shape.
SETS = {
    'digits': (Digits, 'split_seed', 'img', ['mmpretrain.PackInputs'], (3, 8, 8)),
    'scenes': (DigitScenes, 'seed', 'img', ['mmseg.PackSegInputs'], (3, SIZE, SIZE)),
    'moving': (MovingDigits, 'seed', 'frames', ['vt.PackClips'], (3, 8, 32, 32)),
}


@pytest.mark.parametrize('name', SETS)
def test_a_sample_is_fixed_by_seed_split_and_index(name):
    kind, seed, key, steps, shape = SETS[name]
    dataset = kind('test', pipeline=[dict(type=step) for step in steps])
    assert dataset[3]['inputs'].shape == shape
    info, again = dataset.get_data_info(3), kind('test').get_data_info(3)
    for found in ('gt_label', 'gt_seg_map', key):
        assert np.array_equal(info.get(found), again.get(found))
    for other in (kind('train'), kind('test', **{seed: 1})):
        assert not np.array_equal(info[key], other.get_data_info(3)[key])


@pytest.mark.parametrize(
    ('kind', 'options', 'message'),
    [
        (Digits, dict(split='val'), "split='val' must be 'train' or 'test'"),
        (Digits, dict(digits=(3, 10)), 'must be a non-empty subset of 0 to 9'),
    ],
)
def test_wrong_settings(kind, options, message):
    with pytest.raises(UserError, match=message):
        kind(**options)


def images_of(dataset):
    return np.stack([dataset.get_data_info(index)['img'] for index in range(len(dataset))])


def test_digits_are_scikit_learns_and_a_fifth_is_held_out_with_every_class_in_both():
    train, test = Digits('train'), Digits('test')
    assert (len(train), len(test)) == (1437, 360)
    for dataset in (train, test):
        counts = np.bincount(dataset.get_gt_labels(), minlength=10)
        assert counts.min() > 0.9 * counts.max() - 2
    assert train.metainfo['classes'] == tuple('0123456789')
    assert {*Digits(digits=(7, 3)).get_gt_labels().tolist()} == {3, 7}
    images = np.concatenate([images_of(train), images_of(test)])
    assert images.dtype == np.uint8
    ours = np.sort((images[..., 0] / (255 / 16)).round().reshape(1797, 64), axis=0)
    assert np.array_equal(ours, np.sort(load_digits().images.reshape(1797, 64), axis=0))


def test_a_digit_of_a_scene_is_labelled_where_it_is_written():
    """The label under a segment is its digit's, and the segment holds all of its ink and lies in its cell."""
    dataset, numbers = DigitScenes('train'), set()
    for index in range(20):
        written, classes, cells = dataset.choose_digits(np.random.default_rng((0, 0, index)))
        info = dataset.get_data_info(index)
        labels = info['gt_seg_map']
        numbers.add(len(cells))
        assert np.array_equal(classes, dataset.digits[written] + 1)
        for hand, number, (left, top, size) in zip(written, classes, cells):
            assert DIGIT_SIZES[0] <= size <= DIGIT_SIZES[1]
            cell, pixels = (each[top : top + size, left : left + size] for each in (labels, info['img']))
            ink = cv2.resize(dataset.ink[hand], (size, size), interpolation=cv2.INTER_CUBIC)
            assert (cell[ink > 0.5] == number).all()
            assert abs(np.corrcoef(ink.ravel(), pixels.mean(axis=-1).ravel())[0, 1]) > 0.6
            assert set(np.unique(cell)) == {0, number}
            assert 0.15 < (cell == number).mean() < 1
            labels[top : top + size, left : left + size] = 0
        assert not labels.any()
    assert numbers == {3, 4}


def test_train_and_test_are_written_by_other_hands():
    (train, labels), (test, others) = (load_handwriting(split, other_hands=True) for split in ('train', 'test'))
    assert (len(train), len(test)) == (1797 - 3 * 138, 2 * 138)  # the last hands write the test
    images = load_digits().images
    assert np.array_equal(train[0], (images[0] * 255 / 16).round())
    assert np.array_equal(test[-1], (images[-1] * 255 / 16).round())
    assert np.bincount(labels).min() > 100
    assert np.bincount(others).min() > 20
    moving = [[ink for kind in MovingDigits(split).ink_by_digit for ink in kind] for split in ('train', 'test')]
    scenes = [DigitScenes(split).ink for split in ('train', 'test')]
    assert len(scenes[0]) + len(scenes[1]) == 1797
    for of_train, of_test in (moving, scenes):
        assert not {ink.tobytes() for ink in of_train} & {ink.tobytes() for ink in of_test}


def rule(frames):
    """The motion by hand: where the ink is in each frame, and where it goes."""
    frames = np.stack(frames)[..., 0].astype(float)
    ink = np.clip(frames - np.median(frames, axis=(1, 2), keepdims=True) - 30, 0, None)
    height, width = frames.shape[1:]
    upper = ink[:, : height // 2].sum((1, 2)) > ink[:, height // 2 :].sum((1, 2))
    columns = (ink.sum(1) * np.arange(width)).sum(1) / ink.sum((1, 2))
    directions = ['right' if np.diff(columns[here]).sum() > 0 else 'left' for here in (upper, ~upper)]
    return MOTIONS.index(('top' if upper[0] else 'bottom', tuple(directions)))


def test_order_tells_the_motion_and_its_loss_loses_it():
    ordered, shuffled = (MovingDigits('test', num_videos=200, shuffle_frames=option) for option in (False, True))
    accuracies = []
    for dataset in (ordered, shuffled):
        infos = [dataset.get_data_info(index) for index in range(200)]
        accuracies.append(np.mean([rule(info['frames']) == info['gt_label'] for info in infos]))
    assert len({ordered.stream(*purpose).random() for purpose in ((0,), (1,), (0, 1), (0, 2))}) == 4
    assert accuracies[0] > 0.99
    assert accuracies[1] < 0.25  # an eighth, and what 200 videos leave to chance
    for index in range(10):
        frames, others = (dataset.get_data_info(index)['frames'] for dataset in (ordered, shuffled))
        assert sorted(map(np.ndarray.tobytes, frames)) == sorted(map(np.ndarray.tobytes, others))
        assert np.array_equal(others, shuffled.get_data_info(index)['frames'])


def test_the_twin_has_the_same_frames_and_the_digit_as_its_class():
    motion, digit = (MovingDigits(num_videos=300, task=task) for task in ('motion', 'digit'))
    for index in range(5):
        assert np.array_equal(motion.get_data_info(index)['frames'], digit.get_data_info(index)['frames'])
    labels = motion.get_gt_labels(), digit.get_gt_labels()
    for dataset, found, number in zip((motion, digit), labels, (8, 10)):
        assert len(dataset.metainfo['classes']) == number
        assert np.bincount(found, minlength=number).min() > 0.5 * 300 / number
    assert abs(np.corrcoef(*labels)[0, 1]) < 0.15
