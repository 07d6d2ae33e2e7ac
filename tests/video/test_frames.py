"""What is done to a clip's frames is the same for all, and packing keeps their places."""

import numpy as np
import pytest
import torch

from vt.engine.interruption.seeds import seed_random
from vt.errors import UserError
from vt.video.clips import PackClips, SameForAllFrames, ThreeCrops

RANDOM = dict(
    crop=dict(type='RandomResizedCrop', scale=24),
    flip=dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    augment=dict(type='RandAugment', policies='timm_increasing', num_policies=4, total_level=10, magnitude_level=7),
    erase=dict(type='RandomErasing', erase_prob=0.5, mode='rand', fill_color=[90] * 3, fill_std=[50] * 3),
    jitter=dict(type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.4),
)


def same_frames(number):
    image = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)
    return dict(frames=[image.copy() for _ in range(number)], ori_shape=(40, 48))


@pytest.mark.parametrize('name', RANDOM)
def test_a_random_transform_is_alike_for_all_frames_and_differs_over_samples(name):
    step = SameForAllFrames([RANDOM[name]])
    seen = set()
    for sample in range(12):
        seed_random(sample)
        results = step.transform(same_frames(4))
        first, *others = results['frames']
        assert all(np.array_equal(first, other) for other in others)
        assert results['img_shape'] == first.shape[:2]
        seen.add(first.tobytes())
    assert len(seen) > 1


def test_three_crops_of_every_clip():
    wide = np.arange(20, dtype=np.uint8)[None, :, None].repeat(8, 0).repeat(3, 2)
    for turned in (False, True):
        clip = [(wide + 20 * t).swapaxes(0, 1) if turned else wide + 20 * t for t in range(4)]
        results = ThreeCrops(8).transform(dict(frames=clip, num_views=2))
        assert results['num_views'] == 6
        assert results['img_shape'] == (8, 8)
        corners = [int(frame[0, 0, 0]) for frame in results['frames']]
        assert corners == [0, 20, 6, 26, 12, 32, 40, 60, 46, 66, 52, 72]
    with pytest.raises(UserError, match='of 8x20 are smaller than crop_size=9'):
        ThreeCrops(9).transform(dict(frames=[wide], num_views=1))


@pytest.mark.parametrize('views', [1, 3])
def test_packing(views):
    frames = list(np.random.default_rng(0).integers(0, 256, (views * 4, 6, 5, 3), np.uint8))
    results = dict(frames=frames, num_views=views, gt_label=2, img_path='a.mp4')
    packed = PackClips().transform(results)
    inputs = packed['inputs']
    assert inputs.shape == ((3, 4, 6, 5) if views == 1 else (views, 3, 4, 6, 5))
    assert inputs.dtype == torch.uint8
    assert inputs.is_contiguous()
    clip = inputs if views == 1 else inputs[2]
    assert np.array_equal(clip[:, 1].permute(1, 2, 0).numpy(), frames[(views - 1) * 4 + 1])
    assert packed['data_samples'].gt_label.tolist() == [2]
    assert packed['data_samples'].img_path == 'a.mp4'
