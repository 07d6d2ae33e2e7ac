"""The embedded digits."""

import numpy as np
import pytest

from vt.datasets import Digits


def images_and_labels(dataset):
    samples = [dataset.get_data_info(index) for index in range(len(dataset))]
    return np.stack([sample['img'] for sample in samples]), np.array([sample['gt_label'] for sample in samples])


def test_a_fifth_is_held_out_and_every_class_in_both():
    train, test = Digits('train'), Digits('test')
    assert (len(train), len(test)) == (1437, 360)
    for dataset in (train, test):
        counts = np.bincount(dataset.get_gt_labels(), minlength=10)
        assert counts.min() > 0.9 * counts.max() - 2
    assert train.metainfo['classes'] == tuple('0123456789')


def test_together_they_are_scikit_learns_digits():
    from sklearn.datasets import load_digits

    images = np.concatenate([images_and_labels(Digits(split))[0] for split in ('train', 'test')])
    assert images.shape == (1797, 8, 8, 3)
    assert images.dtype == np.uint8
    ours = np.sort((images[..., 0] / (255 / 16)).round().reshape(1797, 64).view(), axis=0)
    theirs = np.sort(load_digits().images.reshape(1797, 64), axis=0)
    assert np.array_equal(ours, theirs)


def test_splits_are_fixed_and_follow_the_seed():
    first, again, other = Digits('test'), Digits('test'), Digits('test', split_seed=1)
    assert np.array_equal(images_and_labels(first)[0], images_and_labels(again)[0])
    assert not np.array_equal(images_and_labels(first)[0], images_and_labels(other)[0])


def test_some_digits_alone():
    every, some = Digits('train'), Digits('train', digits=(3, 8))
    kept = [info for info in (every.get_data_info(index) for index in range(len(every))) if info['gt_label'] in (3, 8)]
    assert [info['gt_label'] for info in kept] == some.get_gt_labels().tolist()
    assert np.array_equal(np.stack([info['img'] for info in kept]), images_and_labels(some)[0])
    assert some.metainfo == every.metainfo
    for digits in ((), (3, 10)):
        with pytest.raises(ValueError, match='must be some of 0 to 9'):
            Digits('train', digits=digits)


def test_pipeline_and_unknown_split():
    dataset = Digits('test', pipeline=[dict(type='mmpretrain.Resize', scale=32), dict(type='mmpretrain.PackInputs')])
    sample = dataset[3]
    assert sample['inputs'].shape == (3, 32, 32)
    with pytest.raises(ValueError, match="split='val' is neither 'train' nor 'test'"):
        Digits('val')
