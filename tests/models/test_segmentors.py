"""Segmentors: the labels of MMSegmentation's sliding without the scores of the whole image; any number of channels."""

from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.config import ConfigDict
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from mmseg.models import EncoderDecoder, SegDataPreProcessor
from mmseg.structures import SegDataSample
from torch.utils._python_dispatch import TorchDispatchMode

import vt
from vt.errors import UserError

BACKBONE = dict(type='ResNet', depth=18, base_channels=4, stem_channels=4, num_stages=2, out_indices=(0, 1))
CONFIG = dict(
    backbone=dict(BACKBONE, strides=(1, 2), dilations=(1, 1)),
    decode_head=dict(type='FCNHead', in_channels=8, channels=4, num_convs=1, concat_input=False, in_index=1),
)


def build(kind, num_classes, window, stride, mode='slide', **head):
    config = deepcopy(CONFIG)
    config['decode_head'] |= dict(num_classes=num_classes, **head)
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = kind(**config, test_cfg=ConfigDict(mode=mode, crop_size=window, stride=stride))
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval().double()


HEADS = [dict(num_classes=5), dict(num_classes=300), dict(num_classes=2, out_channels=1, threshold=0.4)]
SIDES = st.tuples(st.integers(16, 80), st.integers(16, 48), st.floats(0.1, 1))  # of an image, a window, and the stride


@settings(max_examples=8)
@given(SIDES, SIDES, st.sampled_from(HEADS))
def test_labels_are_those_of_mmsegmentations_sliding(height, width, head):
    size, window, overlap = zip(height, width)
    stride = [max(4, int(share * side)) for share, side in zip(overlap, window)]
    images = torch.randn(2, 3, *size, dtype=torch.float64)
    padding = dict(ori_shape=(size[0] - 3, size[1] - 2), img_padding_size=(0, 2, 1, 2))
    with torch.no_grad():
        ours, theirs = (
            build(kind, window=window, stride=stride, **head).predict(
                images, [SegDataSample(metainfo=deepcopy(padding)) for _ in images]
            )
            for kind in (vt.LargeImageSegmentor, EncoderDecoder)
        )
    for one, other in zip(ours, theirs):
        assert one.pred_sem_seg.data.shape == (1, size[0] - 3, size[1] - 2)
        assert torch.equal(one.pred_sem_seg.data, other.pred_sem_seg.data.int())
        assert 'seg_logits' not in one


class Largest(TorchDispatchMode):
    """The largest tensor that is made inside the block, in numbers."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.numbers = max(self.numbers, found.numel())
        return found


def test_memory_does_not_grow_with_the_rows_of_an_image():
    model = build(vt.LargeImageSegmentor, 19, (32, 32), (24, 24)).float()
    numbers = []
    for rows in (64, 160):
        image = torch.randn(1, 3, rows, 48)
        with torch.no_grad(), Largest() as largest:
            model.predict(image)
        numbers.append(largest.numbers)
    assert numbers[0] == 19 * 32 * 48
    assert numbers[1] == max(numbers[0], 3 * 160 * 48)  # the image itself
    whole = build(EncoderDecoder, 19, (32, 32), (24, 24)).float()
    with torch.no_grad(), Largest() as largest:
        whole.predict(image)
    assert largest.numbers == 19 * 160 * 48


def test_labels_have_the_size_of_the_image():
    model = build(vt.LargeImageSegmentor, 4, (32, 32), (24, 24)).float()
    sample = SegDataSample(metainfo=dict(ori_shape=(100, 60), img_shape=(50, 30)))
    with torch.no_grad():
        image = torch.randn(1, 3, 50, 30)
        (found,) = model.predict(image, [sample])
        assert torch.equal(found.pred_sem_seg.data[0, ::2, ::2], model.label(image[0]))
        with pytest.raises(UserError, match='does not support flipped images'):
            model.predict(image, [SegDataSample(metainfo=dict(flip=True))])


@pytest.mark.parametrize(
    ('mode', 'window', 'stride'),
    [('whole', (32, 32), (24, 24)), ('slide', 32, (24, 24)), ('slide', (32, 32), (24, 40))],
)
def test_windows_that_leave_gaps_are_refused(mode, window, stride):
    with pytest.raises(UserError, match=r'must have .*crop_size=\(h, w\) and a stride of at most h and w'):
        build(vt.LargeImageSegmentor, 4, window, stride, mode)


def test_only_a_row_of_windows_bounds_the_width():
    model = build(vt.LargeImageSegmentor, 1000, (32, 32), (24, 24))
    image = torch.zeros(1).expand(3, 2**19, 2**17)
    message = 'a row of windows of wide.tif has 32x131072 pixels, too many: with 1000 classes at most 2 million are '
    with pytest.raises(UserError, match=message):
        model.label(image, 'wide.tif')


@pytest.mark.parametrize(('channels', 'training'), [(1, True), (4, False), (13, True)])
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
