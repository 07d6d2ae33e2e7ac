"""The loss of the validation data is the mean over samples, whatever the batches."""

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.evaluator import Evaluator
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from mmseg.registry import MODELS as SEGMENTORS
from mmseg.structures import SegDataSample
from torch.nn import functional as F

from vt.engine.hooks.validation_loss import HeadLoss
from vt.errors import UserError

BACKBONE = dict(type='mmpretrain.ResNet', depth=18, base_channels=8, stem_channels=8)
LOSS = dict(type='mmpretrain.LabelSmoothLoss', label_smooth_val=0.1, mode='original')


def classifier(**head):
    head, neck = dict(type='LinearClsHead', in_channels=64, num_classes=3) | head, dict(type='GlobalAveragePooling')
    return MODELS.build(dict(type='ImageClassifier', backbone=BACKBONE, neck=neck, head=head)).eval()


def segmentor(**head):
    head = dict(type='FCNHead', in_channels=64, channels=8, num_convs=1, concat_input=False, num_classes=3, **head)
    model = dict(type='EncoderDecoder', backbone=BACKBONE, decode_head=head, test_cfg=dict(mode='whole'))
    model['data_preprocessor'] = dict(type='SegDataPreProcessor', test_cfg=dict(size_divisor=32))
    with DefaultScope.overwrite_default_scope('mmseg'):
        return SEGMENTORS.build(ConfigDict(model)).eval()


@torch.no_grad()
def evaluate(model, inputs, samples, batch):
    evaluator = Evaluator([HeadLoss(model)])
    for start in range(0, len(inputs), batch):
        data = dict(inputs=inputs[start : start + batch], data_samples=samples[start : start + batch])
        evaluator.process(data_samples=model.val_step(data), data_batch=data)
    return evaluator.evaluate(len(inputs))


def test_of_a_classifier():
    torch.manual_seed(0)
    model, inputs, labels = classifier(loss=LOSS), torch.randn(7, 3, 32, 32), torch.tensor([0, 1, 2, 2, 1, 0, 2])
    samples = [DataSample().set_gt_label(int(label)) for label in labels]
    expected = F.cross_entropy(model(inputs), labels, label_smoothing=0.1)
    for batch in (1, 4, 7):
        assert evaluate(model, inputs, samples, batch) == {'val/loss': pytest.approx(expected.item(), rel=1e-5)}


def labelled(mask):
    size = tuple(mask.shape[1:])
    return SegDataSample(metainfo=dict(img_shape=size, ori_shape=size), gt_sem_seg=PixelData(data=mask))


def test_of_a_segmentor_whose_images_are_padded():
    torch.manual_seed(0)
    model, inputs, masks = segmentor(), torch.randn(3, 3, 40, 64), torch.randint(3, (3, 1, 40, 64))
    masks[0, :, :20] = 255
    logits = F.interpolate(model(F.pad(inputs, (0, 0, 0, 24))), (64, 64), mode='bilinear')[:, :, :40]
    expected = F.cross_entropy(logits, masks[:, 0], ignore_index=255, reduction='none').mean()
    for batch in (1, 2, 3):
        found = evaluate(model, [*inputs], [*map(labelled, masks)], batch)
        assert found == {'val/loss': pytest.approx(expected.item(), rel=1e-5)}


def test_one_logit_for_two_classes_is_refused():
    model, mask = segmentor(out_channels=1, threshold=0.3), torch.ones(1, 64, 64, dtype=torch.int64)
    with pytest.raises(UserError, match='requires logits of each class for whole images: remove the hook'):
        evaluate(model, [torch.randn(3, 64, 64)], [labelled(mask)], 1)
