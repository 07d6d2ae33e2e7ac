"""Heat maps: the layer that each kind of model needs, Grad-CAM by its definition, and what cannot be."""

import sys

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import DefaultScope
from torch import nn

from vt.analysis.attention.heat_maps import METHODS, HeatMapper, choose_class
from vt.errors import UserError
from vt.registry import MODELS

pytest.importorskip('pytorch_grad_cam', reason='grad-cam is not installed')

PATCHES = dict(type='vt.PatchEmbed', kernel_size=4, stride=4)
STAGE = dict(channels=16, depth=2, num_heads=2, embed=PATCHES, norm=True)
VIT = dict(type='vt.TokenBackbone', image_size=16, out_type='class_tokens', stages=[STAGE | dict(class_tokens=1)])
RESNET = dict(type='ResNet', depth=18, base_channels=4, stem_channels=4)
VT = dict(type='vt.VTResNet', depth=18, base_channels=4, stem_channels=4, num_tokens=16, token_channels=16)
DINO = dict(model_type='dinov3_vit', hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
DINO |= dict(patch_size=4, num_register_tokens=4)
SWIN = dict(type='SwinTransformer', img_size=32, window_size=2, out_indices=(1,))
SWIN |= dict(arch=dict(embed_dims=8, depths=[1, 1], num_heads=[1, 2]))
AVERAGE = dict(type='GlobalAveragePooling')
FROZEN = dict(type='vt.HuggingFaceBackbone', config=DINO, out_type='vector')
FROZEN = dict(type='vt.FrozenBackbone', backbone=FROZEN)
# A backbone, what is between it and the head, the head's channels, the side of images, and the layer of the map.
MODELS_OF = {
    'ResNet': (RESNET, AVERAGE, 32, 64, 'layer4'),
    'VT-ResNet': (VT, dict(type='vt.TokenAverage'), 16, 64, 'layer4.0.projector'),
    'VT-ResNet, map': (VT | dict(out_type='featmap'), AVERAGE, 16, 64, 'layer4'),
    'class token': (VIT, None, 16, 16, 'stages.0.blocks.1.attention.norm'),
    'average': (VIT | dict(out_type='average', stages=[STAGE]), None, 16, 16, 'stages.0.norm'),
    'Swin of MMPretrain': (SWIN, AVERAGE, 16, 64, 'norm1'),
    'DINOv3, frozen, vector': (FROZEN, None, 16, 64, 'backbone.model.model.layer.1.norm1'),
}


def classifier(backbone, neck=None, channels=16):
    head = dict(type='LinearClsHead', num_classes=3, in_channels=channels)
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(dict(type='ImageClassifier', backbone=backbone, neck=neck, head=head))
    nn.init.normal_(model.head.fc.weight)
    return model.eval()


def build(name):
    backbone, neck, channels, side, layer = MODELS_OF[name]
    if 'DINO' in name:
        pytest.importorskip('transformers')
    return classifier(backbone, neck, channels), torch.randn(1, 3, side, side), f'backbone.{layer}'


def grad_cam(model, images, layer, score):
    """The weights of channels are the mean gradients, and what is left below zero is cut off."""
    kept = []
    hook = model.get_submodule(layer).register_forward_hook(lambda part, inputs, output: kept.append(output))
    output = model(images.requires_grad_())
    hook.remove()
    x, (grad,) = kept[0], torch.autograd.grad(score(output), kept)
    if x.ndim == 3:
        side = int(x.shape[1] ** 0.5)
        x, grad = (each[:, -(side**2) :].transpose(1, 2).unflatten(2, (side, side)) for each in (x, grad))
    heat = (grad.mean(dim=(2, 3), keepdim=True) * x).sum(dim=1)[0].clamp(min=0).detach().numpy()
    heat = cv2.resize(heat, images.shape[:1:-1])
    return torch.from_numpy(heat / max(heat.max(), 1e-30))  # and not from its minimum


@pytest.mark.parametrize('name', MODELS_OF)
def test_every_kind_of_model_has_its_layer_and_grad_cam_is_its_definition(name):
    model, images, layer = build(name)
    expected, mapper = grad_cam(model, images, layer, lambda scores: scores[0, 1]), HeatMapper(model)
    with torch.no_grad():
        found, target = mapper(images.detach(), 1)
    assert (mapper.layer, target) == (layer, 1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_every_method_makes_a_map_of_any_size_and_layer():
    model, images, _ = build('class token')
    for method in METHODS:
        heat, target = HeatMapper(model, method)(images)
        assert heat.shape == (16, 16)
        assert target == model(images).argmax()
        assert 0 <= heat.min() <= heat.max() <= 1 + 1e-5
    heat, _ = HeatMapper(model, layer='backbone.stages.0.blocks.0')(torch.randn(1, 3, 16, 24))
    assert heat.shape == (16, 24)
    assert np.ptp(heat.numpy()) > 0


def test_of_a_video_there_is_a_map_at_each_time():
    arch = dict(channels=8, depths=(1, 1), key_value_stride=1)
    model = classifier(dict(type='vt.MViT', arch=arch, num_frames=4, image_size=16))
    assert HeatMapper(model)(torch.randn(1, 3, 4, 16, 16))[0].shape == (4, 16, 16)


def test_of_a_segmentor_the_pixels_of_the_class_speak():
    """Of the class of the most pixels that are no background."""
    norm = dict(norm_cfg=dict(type='BN'))
    head = dict(type='FPNHead', in_channels=[8] * 4, in_index=[0, 1, 2, 3], feature_strides=[4, 8, 16, 32], channels=8)
    neck = dict(type='vt.VTFPN', in_channels=[4, 8, 16, 32], out_channels=8, token_channels=16)
    with DefaultScope.overwrite_default_scope('mmseg'):
        options = dict(backbone=RESNET | norm, neck=neck, decode_head=head | norm | dict(num_classes=3))
        torch.manual_seed(0)
        model = MODELS.build(dict(type='EncoderDecoder', test_cfg=dict(mode='whole'), **options)).eval()
    model.decode_head.conv_seg.weight.data.normal_(std=20)
    pixels = model(images := torch.randn(1, 3, 64, 96))[0].argmax(dim=0).flatten().bincount(minlength=3)
    (_, second), (first, next_one) = pixels.topk(2).values.tolist(), pixels.topk(2).indices.tolist()
    assert second > 0
    model.dataset_meta = dict(classes=['background' if index == first else 'other' for index in range(3)])
    mapper = HeatMapper(model)
    assert mapper(images)[1] == next_one
    assert mapper.layer == 'backbone.layer4'
    for name, own in enumerate(model(images)[0].argmax(dim=0) == torch.arange(3)[:, None, None]):
        expected = grad_cam(model, images, mapper.layer, lambda scores: scores[0, name][own].sum())  # noqa: B023
        torch.testing.assert_close(mapper(images, name)[0], expected, atol=1e-4, rtol=1e-3)


def test_what_cannot_be_is_one_line(monkeypatch):
    model, images, _ = build('ResNet')
    for arguments, target, words in [
        (('camgrad',), None, 'there is no heat map method'),
        (('gradcam', 'backbone.layer5'), None, 'output of layer backbone.layer5 is neither .* backbone.layer4'),
        (('gradcam',), 3, 'no class 3: classes are 0 to 2'),
    ]:
        with pytest.raises(UserError, match=words):
            HeatMapper(model, *arguments)(images, target)
    nn.init.zeros_(model.head.fc.weight)
    with pytest.raises(UserError, match='no layer'):
        HeatMapper(model)(images)
    monkeypatch.setitem(sys.modules, 'pytorch_grad_cam', None)
    with pytest.raises(UserError, match='require grad-cam: pip install grad-cam'):
        HeatMapper(model)


def test_numbers_are_indices_and_words_are_names_first():
    model = nn.Module()
    model.dataset_meta = dict(classes=['1', 'cat', '7', 'dog'])
    for target, found in ((1, 1), ('1', 0), ('dog', 3), ('2', 2), (np.int64(2), 2)):
        assert choose_class(model, torch.zeros(4), target) == found
    with pytest.raises(UserError, match='there is no class 7: classes are 0 to 3, or 1, cat'):
        choose_class(model, torch.zeros(4), 7)
