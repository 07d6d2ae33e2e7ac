"""The relational scenes: what their labels mean."""

import numpy as np

from projects.relations.tasks import RelationalDigitScenes
from vt.datasets.digit_scenes import FAR, SIZE


def test_images_and_labels():
    dataset = RelationalDigitScenes('test', num_scenes=60)
    infos = [dataset.get_data_info(index) for index in range(60)]
    assert all(info['img'].shape == (SIZE, SIZE, 3) and info['img'].dtype == np.uint8 for info in infos)
    labels = np.stack([info['gt_seg_map'] for info in infos])
    shares = np.bincount(labels.ravel()) / labels.size
    assert len(shares) == len(dataset.metainfo['classes']) == len(dataset.metainfo['palette'])
    assert 0.7 < shares[0] < 0.9
    assert shares[1:].min() > 0.005


def test_a_pair_is_the_same_digit_in_another_hand_far_away():
    dataset = RelationalDigitScenes('train')
    number_of_pairs = []
    for index in range(100):
        written, classes, cells = dataset.choose_digits(np.random.default_rng(index))
        digits = dataset.digits[written]
        centres = np.array([(left + size / 2, top + size / 2) for left, top, size in cells])
        assert len(set(written)) == len(written)
        for one in range(len(digits)):
            like = [other for other in range(len(digits)) if other != one and digits[other] == digits[one]]
            assert classes[one] == (2 if like else 1)
            assert len(like) <= 1
            assert all(np.linalg.norm(centres[one] - centres[other]) >= FAR for other in like)
        number_of_pairs.append((classes == 2).sum() // 2)
    assert set(number_of_pairs) == {0, 1, 2}
