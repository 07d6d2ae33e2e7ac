"""The embedded scenes: fixed by seed and index, and what their labels mean."""

import numpy as np
import pytest

from vt.datasets import DigitScenes
from vt.datasets.digit_scenes import DIGIT_SIZES, SIZE

PACK = [dict(type='mmseg.PackSegInputs')]


def test_a_scene_is_fixed_by_seed_split_and_index():
    first, again, other = DigitScenes('train'), DigitScenes('train', num_scenes=5), DigitScenes('train', seed=1)
    assert (len(first), len(again)) == (8192, 5)
    info = first.get_data_info(3)
    for key in ('img', 'gt_seg_map'):
        assert np.array_equal(info[key], again.get_data_info(3)[key])
        assert not np.array_equal(info[key], other.get_data_info(3)[key])
        assert not np.array_equal(info[key], DigitScenes('test').get_data_info(3)[key])


def test_images_and_labels():
    dataset = DigitScenes('test', num_scenes=60)
    infos = [dataset.get_data_info(index) for index in range(60)]
    assert all(info['img'].shape == (SIZE, SIZE, 3) and info['img'].dtype == np.uint8 for info in infos)
    labels = np.stack([info['gt_seg_map'] for info in infos])
    assert labels.shape == (60, SIZE, SIZE)
    shares = np.bincount(labels.ravel()) / labels.size
    assert len(shares) == len(dataset.metainfo['classes']) == len(dataset.metainfo['palette'])
    assert 0.7 < shares[0] < 0.9
    assert shares[1:].min() > 0.005


def test_handwriting_of_train_and_test_is_disjoint():
    train, test = DigitScenes('train'), DigitScenes('test')
    assert len(train.ink) + len(test.ink) == 1797
    written = {ink.tobytes() for ink in train.ink}
    assert not any(ink.tobytes() in written for ink in test.ink)


def test_a_digit_is_labelled_where_it_is_written():
    """The label under a segment is its digit's, and the segment holds all of its ink and lies in its cell."""
    dataset = DigitScenes('train')
    for index in range(20):
        written, classes, cells = dataset.choose_digits(np.random.default_rng((0, 0, index)))
        labels = dataset.get_data_info(index)['gt_seg_map']
        assert 3 <= len(cells) <= 4
        assert np.array_equal(classes, dataset.digits[written] + 1)
        for number, (left, top, size) in zip(classes, cells):
            assert DIGIT_SIZES[0] <= size <= DIGIT_SIZES[1]
            cell = labels[top : top + size, left : left + size]
            assert set(np.unique(cell)) == {0, number}
            assert 0.15 < (cell == number).mean() < 1
            labels[top : top + size, left : left + size] = 0
        assert not labels.any()


def test_pipeline_and_unknown_split():
    sample = DigitScenes('test', num_scenes=2, pipeline=PACK)[1]
    assert sample['inputs'].shape == (3, SIZE, SIZE)
    assert sample['data_samples'].gt_sem_seg.data.shape == (1, SIZE, SIZE)
    assert sample['data_samples'].img_path == 'test_000001.png'
    with pytest.raises(ValueError, match="split='val' is neither 'train' nor 'test'"):
        DigitScenes('val')
