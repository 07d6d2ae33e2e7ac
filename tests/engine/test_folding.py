"""A test with folded normalisations predicts what the model does, and leaves the model alone."""

import copy

import pytest
import torch
from mmcv.cnn import ConvModule
from mmengine.dataset import DefaultSampler
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from mmseg.registry import MODELS as SEGMENTORS
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from vt.engine.folding import fold_norms
from vt.engine.runner import VTRunner

HEAD = dict(type='LinearClsHead', num_classes=3, in_channels=512)
RESNET = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18),
    neck=dict(type='GlobalAveragePooling'),
    head=HEAD,
)
VT = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.VTResNet', depth=50, num_tokens=4, token_channels=64),
    neck=dict(type='vt.TokenAverage'),
    head=HEAD | dict(in_channels=64),
)
FPN = dict(type='mmseg.FPN', in_channels=[256, 512, 1024, 2048], out_channels=32, num_outs=4)
BN = dict(type='BN')
SEGMENTOR = dict(
    type='EncoderDecoder',
    backbone=dict(type='ResNetV1c', depth=50, norm_cfg=BN),
    neck=FPN | dict(norm_cfg=BN),
    decode_head=dict(
        type='FPNHead',
        in_channels=[32] * 4,
        in_index=[0, 1, 2, 3],
        feature_strides=[4, 8, 16, 32],
        channels=16,
        num_classes=5,
        norm_cfg=BN,
    ),
    test_cfg=dict(mode='whole'),
)
VT_SEGMENTOR = SEGMENTOR | dict(neck=FPN | dict(type='vt.VTFPN', token_channels=64, norm_cfg=BN))


def build(cfg):
    """A model whose normalisations have seen something."""
    torch.manual_seed(0)
    is_segmentor = cfg['type'] == 'EncoderDecoder'
    with DefaultScope.overwrite_default_scope('mmseg' if is_segmentor else 'mmpretrain'):
        model = (SEGMENTORS if is_segmentor else MODELS).build(copy.deepcopy(cfg)).double().eval()
    for norm in norms(model):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    return model


def norms(model):
    return [part for part in model.modules() if isinstance(part, _NormBase)]


@pytest.mark.parametrize('cfg', [RESNET, VT, SEGMENTOR, VT_SEGMENTOR], ids=['ResNet', 'VT', 'FPN', 'VT-FPN'])
def test_predictions_are_the_models(cfg):
    model, x = build(cfg), torch.randn(2, 3, 64, 96, dtype=torch.double)
    with torch.no_grad():
        expected = model(x, mode='tensor')
        assert norms(model)
        folded = fold_norms(copy.deepcopy(model))
        assert not norms(folded)
        torch.testing.assert_close(folded(x, mode='tensor'), expected, rtol=1e-9, atol=1e-9)


class Preactivated(nn.Module):
    """A normalisation behind a convolution in the list of parts, and before it in the forward pass."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)


@pytest.mark.parametrize(
    'part',
    [
        Preactivated(),
        ConvModule(3, 3, 1, norm_cfg=dict(type='BN'), order=('norm', 'conv', 'act')),
        ConvModule(3, 3, 1, norm_cfg=dict(type='BN'), conv_cfg=dict(type='ConvWS')),
    ],
    ids=['unknown order', 'norm first', 'standardized weights'],
)
def test_what_would_compute_something_else_stays(part):
    assert len(norms(fold_norms(nn.Sequential(part)))) == 1


class Probe(Hook):
    """Keeps what is tested; at first it gives a layer's average another value."""

    def __init__(self, averages):
        self.averages = averages
        self.tested = []

    def before_test(self, runner):
        self.averages.ema_model.module.head.fc.weight.data.fill_(0.25)

    def after_test_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.tested.append(runner.model)


@pytest.mark.parametrize('fold', [True, False])
def test_a_copy_is_tested_and_the_runner_has_its_model_back(fold, tmp_path):
    """With averages of the weights, too, which another hook puts into the model for a test, and takes out again."""
    averages, model = EMAHook(), build(RESNET).float()
    probe = Probe(averages)
    dataset = [dict(inputs=torch.zeros(3, 32, 32), data_samples=DataSample())]
    runner = VTRunner(
        model=model,
        work_dir=str(tmp_path),
        test_dataloader=dict(dataset=dataset, sampler=dict(type=DefaultSampler, shuffle=False), batch_size=1),
        test_cfg=dict(),
        test_evaluator=[],
        custom_hooks=[averages, probe],
        cfg=dict(speed=dict(fold_norms=fold, keep_memory=False)),
    )
    weight = model.head.fc.weight.clone()
    for _ in range(2):
        runner.test()
        assert runner.model is model
        assert len(norms(model)) == 20
        assert torch.equal(model.head.fc.weight, weight)
    for tested in probe.tested:
        assert (tested is model) != fold
        assert len(norms(tested)) == (0 if fold else 20)
        assert not fold or tested.head.fc.weight.eq(0.25).all()
