"""The locality of a ViT's attention against its definition, and against what its layers give.

Letters: N batch, h heads, S tokens of the sequence, d channels of a head.
"""

import itertools
import math

import pytest
import torch
from mmengine.registry import MODELS, init_default_scope
from torch.nn.functional import scaled_dot_product_attention

from projects.relations.locality import (
    RecordScaledDotProduct,
    locality_ratio,
    read_patch_attention,
    uniform_locality,
)


@pytest.mark.parametrize(('n', 'heads', 'height', 'width'), [(2, 3, 4, 5), (1, 1, 1, 1), (1, 2, 1, 6), (2, 1, 3, 2)])
def test_locality_is_the_share_of_the_3x3_patches(n, heads, height, width):
    size = height * width
    attention = torch.rand(n, heads, size, size, dtype=torch.float64)
    ratio = locality_ratio(attention, (height, width))
    for index, head in itertools.product(range(n), range(heads)):
        shares = []
        for i, j in itertools.product(range(height), range(width)):
            given = attention[index, head, i * width + j].view(height, width)
            near = [
                given[x, y].item()
                for x in (i - 1, i, i + 1)
                for y in (j - 1, j, j + 1)
                if 0 <= x < height and 0 <= y < width
            ]
            shares.append(sum(near) / given.sum().item())
        assert ratio[index, head].item() == pytest.approx(sum(shares) / len(shares))


@pytest.mark.parametrize(('height', 'width'), [(14, 14), (3, 5), (1, 4), (2, 2), (1, 1)])
def test_locality_of_known_attention(height, width):
    size = height * width
    even = torch.ones(1, 1, size, size, dtype=torch.float64) / size
    assert locality_ratio(even, (height, width)).item() == pytest.approx(uniform_locality(height, width))
    assert locality_ratio(torch.eye(size)[None, None], (height, width)).item() == 1
    if height > 3:
        far = torch.eye(size).roll(size // 2, dims=1)[None, None]  # every patch looks half a map away
        assert locality_ratio(far, (height, width)).item() == 0


def test_locality_needs_no_total_of_one():
    attention = torch.rand(2, 3, 12, 12, dtype=torch.float64)
    scale = torch.rand(2, 3, 12, 1, dtype=torch.float64) + 0.1  # what is left after the class token's share
    torch.testing.assert_close(locality_ratio(attention * scale, (3, 4)), locality_ratio(attention, (3, 4)))


@pytest.mark.parametrize('options', [{}, dict(scale=0.3), dict(is_causal=True), dict(attn_mask='bias')])
def test_recorded_attention_is_what_pytorch_multiplies_the_values_with(options):
    query, key, value = torch.randn(3, 2, 4, 7, 5, dtype=torch.float64)
    if 'attn_mask' in options:
        options = dict(attn_mask=torch.randn(4, 7, 7, dtype=torch.float64))
    with RecordScaledDotProduct() as recorder:
        output = scaled_dot_product_attention(query, key, value, **options)
    (attention,) = recorder.maps
    torch.testing.assert_close(attention @ value, output)
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(2, 4, 7, dtype=torch.float64))
    bias = options.get('attn_mask', torch.zeros(7, 7, dtype=torch.float64))
    if 'is_causal' in options:
        bias = torch.full((7, 7), -math.inf, dtype=torch.float64).triu(1)
    logits = query @ key.transpose(-2, -1) * options.get('scale', 5**-0.5) + bias
    torch.testing.assert_close(attention, logits.exp() / logits.exp().sum(dim=-1, keepdim=True))


def make_classifier(backbone):
    init_default_scope('mmpretrain')
    model = MODELS.build(dict(type='ImageClassifier', backbone=backbone))
    with torch.no_grad():
        for parameter in model.parameters():  # logits far from alike
            parameter.normal_(std=0.2)
    model.double()
    model.train(False)
    return model


ARCH = dict(embed_dims=24, num_layers=3, num_heads=3, feedforward_channels=32)


@pytest.mark.parametrize(
    ('options', 'length'),
    [
        (dict(type='VisionTransformer'), 13),
        (dict(type='VisionTransformer', with_cls_token=False, out_type='avg_featmap', pre_norm=True), 12),
        (dict(type='VisionTransformer', layer_scale_init_value=0.5, qkv_bias=False), 13),
        (dict(type='DistilledVisionTransformer'), 14),
        (dict(type='DeiT3'), 13),
        (dict(type='RevVisionTransformer'), 12),
    ],
)
def test_attention_of_a_vit_explains_what_its_layers_give(options, length):
    """Read attention, times the values, through the layer's own projection: the layer's own output at the patches."""
    model = make_classifier(dict(arch=ARCH, img_size=(24, 32), patch_size=8) | options)
    layers, seen = [layer.attn for layer in model.backbone.layers], {}
    for index, layer in enumerate(layers):
        layer.register_forward_hook(lambda part, inputs, output, index=index: seen.update({index: (*inputs, output)}))
    attention, grid = read_patch_attention(model, torch.randn(2, 3, 24, 32, dtype=torch.float64))
    assert grid == (3, 4)
    assert len(attention) == len(seen) == 3
    for index, layer in enumerate(layers):
        x, output = seen[index]
        values = layer.qkv(x).chunk(3, dim=-1)[2].unflatten(-1, (3, 8)).transpose(1, 2)  # N, h, S, d
        assert attention[index].shape == (2, 3, 12, length)
        read = (attention[index] @ values).transpose(1, 2).flatten(2)
        torch.testing.assert_close(layer.gamma1(layer.proj(read)), output[:, -12:])
    assert not model.backbone.patch_embed._forward_hooks


@pytest.mark.parametrize(
    ('backbone', 'message'),
    [
        (dict(type='ResNet', depth=18), 'ResNet: it has no patch_embed and layers'),
        (dict(type='BEiTViT', arch=ARCH, img_size=32, patch_size=8), 'BEiTViT: 0 of its 3 layers call'),
        (dict(type='ViTEVA02', arch=ARCH, img_size=32, patch_size=8), 'ViTEVA02: 0 of its 3 layers call'),
    ],
)
def test_a_backbone_whose_attention_cannot_be_read_is_named(backbone, message):
    model = make_classifier(backbone)
    with pytest.raises(ValueError, match=message):
        read_patch_attention(model, torch.randn(1, 3, 32, 32, dtype=torch.float64))


def test_tokens_that_have_no_known_place_are_named():
    model = make_classifier(dict(type='VisionTransformer', arch=ARCH, img_size=32, patch_size=8))
    model.backbone.num_extra_tokens = 3
    with pytest.raises(ValueError, match='attention is 17x17 where 19 tokens should meet each other'):
        read_patch_attention(model, torch.randn(1, 3, 32, 32, dtype=torch.float64))
