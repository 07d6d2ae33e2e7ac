"""Normalisation of any number of channels in a segmentor: MMSegmentation's, channel by channel."""

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.models import SegDataPreProcessor
from mmseg.structures import SegDataSample

import vt


@pytest.mark.parametrize('training', [False, True])
@pytest.mark.parametrize('channels', [1, 2, 4, 13])
def test_each_channel_is_normalised_and_padded_as_one_of_its_own(channels, training):
    torch.manual_seed(channels)
    mean, std = torch.rand(channels).tolist(), (1 + torch.rand(channels)).tolist()
    image = torch.rand(channels, 6, 8)
    sample = SegDataSample(gt_sem_seg=PixelData(data=torch.zeros(1, 6, 8)))
    options = dict(size=(8, 8), test_cfg=dict(size_divisor=4))

    def run(preprocessor, image):
        return preprocessor(dict(inputs=[image], data_samples=[sample.clone()]), training)['inputs']

    found = run(vt.SegBandsPreProcessor(mean, std, **options), image)
    each = [
        run(SegDataPreProcessor(mean[index : index + 1], std[index : index + 1], **options), image[index : index + 1])
        for index in range(channels)
    ]
    assert torch.equal(found, torch.cat(each, dim=1))
    assert not vt.SegBandsPreProcessor(mean, std).state_dict()
