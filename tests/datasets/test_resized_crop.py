"""Random crops resized by PyTorch, against Pillow through MMPretrain's class with the same random numbers."""

import numpy as np
import pytest
from mmpretrain.datasets import RandomResizedCrop as Published

from vt.datasets import RandomResizedCrop
from vt.errors import UserError


def draw(height, width, channels=3):
    """An image of noise at two scales, which any other filter changes by more than 2 of 255."""
    rng = np.random.default_rng(0)
    coarse = np.kron(rng.integers(0, 200, (-(-height // 8), -(-width // 8), channels)), np.ones((8, 8, 1)))
    return (coarse[:height, :width] + rng.integers(0, 56, (height, width, channels))).astype(np.uint8)


@pytest.mark.parametrize('interpolation', ['bilinear', 'bicubic'])
@pytest.mark.parametrize('size', [(375, 500), (90, 60)])
def test_crops_are_those_of_pillow(size, interpolation):
    options = dict(scale=(112, 96), interpolation=interpolation)
    image = draw(*size)
    results = []
    for crop in (RandomResizedCrop(**options), Published(**options, backend='pillow'), Published(**options)):
        np.random.seed(3)
        results.append([crop(dict(img=image)) for _ in range(4)])
    ours, pillow, opencv = (np.stack([result['img'] for result in each]).astype(int) for each in results)
    assert ours.shape == (4, 112, 96, 3)
    assert results[0][0]['img_shape'] == results[1][0]['img_shape']
    assert results[0][0]['img'].dtype == np.uint8
    assert results[0][0]['img'].flags.c_contiguous
    assert np.abs(ours - pillow).max() <= 2
    assert (ours != pillow).mean() < 0.02
    assert size[0] < 112 or np.abs(opencv - pillow).max() > 10  # filters differ where images shrink


def test_other_images_are_cropped():
    crop = RandomResizedCrop(32)
    grey, reversed_channels = draw(50, 60)[..., 0], draw(50, 60)[..., ::-1]  # Pillow's decoder gives the latter
    assert crop(dict(img=grey))['img'].shape == (32, 32, 1)
    assert crop(dict(img=reversed_channels))['img'].shape == (32, 32, 3)
    assert crop(dict(img=draw(50, 60, 5).astype(np.float32)))['img'].dtype == np.float32


def test_another_interpolation_is_one_line():
    with pytest.raises(UserError, match="interpolation='lanczos' must be 'bilinear' or 'bicubic'"):
        RandomResizedCrop(32, interpolation='lanczos')
