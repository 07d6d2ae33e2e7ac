"""Batches of clips: normalised, mixed, and several views of a video averaged."""

import numpy as np
import pytest
import torch
from mmpretrain.models import ImageClassifier, VideoDataPreprocessor
from mmpretrain.structures import DataSample
from video.tiny_video_network import TinyVideoNetwork

from vt.video.views import ClipPreprocessor, VideoClassifier

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
    expected = VideoDataPreprocessor(**NORM, format_shape='NCTHW')(
        dict(inputs=torch.stack(data['inputs']), data_samples=None)
    )
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
        preprocessor = ClipPreprocessor(**NORM, num_classes=3, batch_augments=augments)
        prepared = preprocessor(data, training=True)
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
            alone = model.test_step(dict(inputs=list(clips)))
            expected = torch.stack([view.pred_score for view in alone]).mean(0)
            torch.testing.assert_close(sample.pred_score, expected)
            assert sample.pred_label.item() == expected.argmax()
            assert sample.gt_label.item() == label
        one = batch(2, 3, 4, 16, 16)
        scores = [sample.pred_score for sample in model.test_step(one)]
        as_images = ImageClassifier.predict(model, model.data_preprocessor(one)['inputs'])
    assert torch.equal(torch.stack(scores), torch.stack([sample.pred_score for sample in as_images]))
