"""The twin digits: what an image holds, that it is the same each time, that hands don't mix."""

import numpy as np
import pytest

from projects.relations.tasks import TwinDigits
from projects.relations.tasks.twin_digits import SIZE


def test_an_image_is_the_same_every_time_and_fits_its_label():
    dataset, again = TwinDigits(num_images=40), TwinDigits(num_images=40)
    for index in range(40):
        info, other = dataset.get_data_info(index), again.get_data_info(index)
        assert np.array_equal(info['img'], other['img'])
        assert info['gt_label'] == other['gt_label'] == dataset.get_cat_ids(index)[0]
        assert info['img'].shape == (SIZE, SIZE, 3)
        assert info['img'].dtype == np.uint8


@pytest.mark.parametrize(('inked', 'quarters'), [(9, 2), (0, 1), (4, 1), (5, 0)])
def test_two_digits_are_alike_and_the_others_differ(monkeypatch, inked, quarters):
    """Only one digit has ink: it shows in as many quarters as it stands in."""
    monkeypatch.setattr('projects.relations.tasks.twin_digits.NOISE', 0)
    dataset = TwinDigits(num_images=1)
    dataset.ink_by_digit = [np.full((5, 8, 8), digit == inked, np.float32) for digit in range(10)]
    for seed in range(10):
        image = dataset.compose(np.random.default_rng(seed), np.array([9, 0, 4])).image
        half = SIZE // 2
        means = [image[y : y + half, x : x + half].mean() for y in (0, half) for x in (0, half)]
        assert sum(mean > image.min() + 1e-3 for mean in means) == quarters


def test_boxes_hold_the_digits(monkeypatch):
    monkeypatch.setattr('projects.relations.tasks.twin_digits.NOISE', 0)
    info = TwinDigits(num_images=1).get_data_info(0)
    inked = info['img'][..., 0] > info['img'].min()
    assert (len(info['related']), len(info['others'])) == (2, 2)
    for left, top, right, bottom in (*info['related'], *info['others']):
        assert inked[top:bottom, left:right].any()
        inked[top:bottom, left:right] = False
    assert not inked.any()


def test_labels_are_spread_over_the_digits():
    labels = TwinDigits(num_images=2000).get_gt_labels()
    assert np.bincount(labels, minlength=10).min() > 150


def test_train_and_test_are_written_by_disjoint_hands_and_seeds_differ():
    train, test = TwinDigits('train', 4), TwinDigits('test', 4)
    hands = [{ink.tobytes() for kind in dataset.ink_by_digit for ink in kind} for dataset in (train, test)]
    assert not hands[0] & hands[1]
    assert not np.array_equal(train.get_data_info(0)['img'], TwinDigits('train', 4, seed=1).get_data_info(0)['img'])


def test_an_unknown_split_is_an_error():
    with pytest.raises(ValueError, match="split='val' must be 'train' or 'test'"):
        TwinDigits('val')
