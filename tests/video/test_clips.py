"""Clips: which frames make one, what is done to all of them alike, and batches and views of them."""

import random

import numpy as np
import pytest
import torch
from mmcv.transforms import BaseTransform
from mmpretrain.models import ImageClassifier, VideoDataPreprocessor
from mmpretrain.registry import TRANSFORMS
from mmpretrain.structures import DataSample
from video.tiny_video_network import TinyVideoNetwork
from video.written_videos import draw, write

from vt.engine.determinism import seed_random
from vt.errors import UserError
from vt.video.clips import LoadClips, PackClips, SameForAllFrames, ThreeCrops
from vt.video.views import ClipPreprocessor, VideoClassifier


def starts(num_frames, **options):
    return LoadClips(**options).choose_starts(num_frames).tolist()


@pytest.mark.parametrize(
    ('num_frames', 'num_clips', 'expected'),
    [(300, 1, [119]), (300, 5, [0, 60, 120, 179, 239]), (62, 2, [0, 1]), (10, 2, [0, 0])],
)
def test_clips_are_spread_from_end_to_end(num_frames, num_clips, expected):
    """A clip of 16 frames, every 4th, spans 61."""
    assert starts(num_frames, clip_length=16, frame_stride=4, num_clips=num_clips) == expected


@pytest.mark.parametrize(('num_frames', 'expected'), [(11, {0, 1, 2}), (9, {0}), (1, {0})])
def test_a_random_clip_begins_anywhere_from_which_it_fits(num_frames, expected):
    np.random.seed(0)
    assert {starts(num_frames, clip_length=5, frame_stride=2)[0] for _ in range(60)} == expected


def test_frames_of_clips(tmp_path):
    frames = draw(30)
    path = str(write(tmp_path / 'a.avi', frames, 'FFV1'))
    results = LoadClips(4, 3, num_clips=2).transform(dict(img_path=path))
    assert results['num_views'] == 2
    assert results['img_shape'] == results['ori_shape'] == (48, 64)
    for frame, index in zip(results['frames'], [0, 3, 6, 9, 20, 23, 26, 29], strict=True):
        assert np.array_equal(frame, frames[index])
    short = dict(img_path=str(write(tmp_path / 'b.avi', frames[:6], 'FFV1')))
    for frame, index in zip(LoadClips(4, 3, num_clips=1).transform(short)['frames'], [0, 3, 5, 5], strict=True):
        assert np.array_equal(frame, frames[index])  # the last one is repeated
        frame[:] = 0  # which is another array


@TRANSFORMS.register_module()
class AddDraw(BaseTransform):
    """Adds a random number of one generator."""

    draws = dict(python=random.random, numpy=np.random.rand, torch=lambda: torch.rand(()).item())

    def __init__(self, generator):
        self.draw = self.draws[generator]

    def transform(self, results):
        return results | dict(img=results['img'] + np.uint8(256 * self.draw()))


RANDOM = {generator: dict(type='AddDraw', generator=generator) for generator in AddDraw.draws} | dict(
    crop=dict(type='RandomResizedCrop', scale=24),
    augment=dict(type='RandAugment', policies='timm_increasing', num_policies=4, total_level=10, magnitude_level=7),
)


@pytest.mark.parametrize('name', RANDOM)
def test_a_random_transform_is_alike_for_all_frames_and_differs_over_samples(name):
    """Draws go on as after one image, so that two steps do not draw the same numbers."""
    step, seen = SameForAllFrames([RANDOM[name]]), set()
    image = np.random.default_rng(0).integers(0, 256, (40, 48, 3), np.uint8)
    for sample in range(12):
        afterwards = []
        for number in (1, 4):
            seed_random(sample)
            results = step.transform(dict(frames=[image.copy() for _ in range(number)], ori_shape=(40, 48)))
            afterwards.append([draw() for draw in AddDraw.draws.values()])
        first, *others = results['frames']
        assert all(np.array_equal(first, other) for other in others)
        assert results['img_shape'] == first.shape[:2]
        assert afterwards[0] == afterwards[1]
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
    packed = PackClips().transform(dict(frames=frames, num_views=views, gt_label=2, img_path='a.mp4'))
    inputs = packed['inputs']
    assert inputs.shape == ((3, 4, 6, 5) if views == 1 else (views, 3, 4, 6, 5))
    assert inputs.dtype == torch.uint8
    assert inputs.is_contiguous()
    clip = inputs if views == 1 else inputs[2]
    assert np.array_equal(clip[:, 1].permute(1, 2, 0).numpy(), frames[(views - 1) * 4 + 1])
    assert packed['data_samples'].gt_label.tolist() == [2]
    assert packed['data_samples'].img_path == 'a.mp4'


NORM = dict(mean=[10.0, 20.0, 30.0], std=[2.0, 3.0, 4.0], to_rgb=True)


def batch(number, *shape):
    torch.manual_seed(0)
    clips = [torch.randint(256, shape, dtype=torch.uint8) for _ in range(number)]
    return dict(inputs=clips, data_samples=[DataSample().set_gt_label(index % 3) for index in range(number)])


@pytest.mark.parametrize('views', [(), (3,), (5,)])
def test_normalised_as_mmpretrains_video_preprocessor(views):
    data = batch(2, *views, 3, 4, 6, 5)
    prepared = ClipPreprocessor(**NORM)(data)
    assert prepared['inputs'].shape == (2, *views, 3, 4, 6, 5)
    theirs = VideoDataPreprocessor(**NORM, format_shape='NCTHW')
    expected = theirs(dict(inputs=torch.stack(data['inputs']), data_samples=None))
    assert torch.equal(prepared['inputs'], expected['inputs'])
    assert [sample.gt_label.item() for sample in prepared['data_samples']] == [0, 1]
    assert torch.equal(ClipPreprocessor()(data)['inputs'], torch.stack(data['inputs']).float())


@pytest.mark.parametrize('augment', [dict(type='Mixup', alpha=1.0), dict(type='CutMix', alpha=1.0)])
def test_mixing_is_that_of_images_alike_in_all_frames(augment):
    """Of a clip whose frames are all one image, each frame is what the image becomes."""
    images = batch(6, 3, 1, 16, 12)
    clips = dict(batch(6, 3, 1, 16, 12), inputs=[image.repeat(1, 5, 1, 1) for image in images['inputs']])
    augments = dict(augments=augment)
    results = []
    for data in (images, clips):
        np.random.seed(3)
        torch.manual_seed(3)
        prepared = ClipPreprocessor(**NORM, num_classes=3, batch_augments=augments)(data, training=True)
        results.append((prepared['inputs'], torch.stack([s.gt_score for s in prepared['data_samples']]).clone()))
    (image, scores), (clip, scores_of_clips) = results
    assert torch.equal(scores, scores_of_clips)
    assert (scores.max(1).values < 1).any()
    assert clip.shape == (6, 3, 5, 16, 12)
    assert torch.equal(clip, image.expand_as(clip))


def test_probabilities_are_averaged_over_views():
    options = dict(
        backbone=TinyVideoNetwork(),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=8),
        data_preprocessor=dict(type='vt.ClipPreprocessor', **NORM),
    )
    torch.manual_seed(0)
    model = VideoClassifier(**options).eval()
    data = batch(2, 5, 3, 4, 16, 16)
    with torch.no_grad():
        predicted = model.test_step(data)
        for clips, sample, label in zip(data['inputs'], predicted, (0, 1)):
            expected = torch.stack([view.pred_score for view in model.test_step(dict(inputs=list(clips)))]).mean(0)
            torch.testing.assert_close(sample.pred_score, expected)
            assert sample.pred_label.item() == expected.argmax()
            assert sample.gt_label.item() == label
        one = batch(2, 3, 4, 16, 16)
        scores = [sample.pred_score for sample in model.test_step(one)]
        as_images = ImageClassifier.predict(model, model.data_preprocessor(one)['inputs'])
    assert torch.equal(torch.stack(scores), torch.stack([sample.pred_score for sample in as_images]))
