"""Backbones of transformers and timm below VT's parts, frozen or not, and the pyramid of a plain ViT's map."""

import re

import pytest
import torch
from torch.nn.functional import conv_transpose2d, gelu, layer_norm, max_pool2d

from vt.errors import UserError
from vt.models.layer_depths import layer_depths
from vt.registry import MODELS

transformers = pytest.importorskip('transformers', reason='transformers is not installed')

SMALL = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=2)
DINO = {
    'dinov2': dict(model_type='dinov2', patch_size=14, image_size=56, **SMALL),
    'dinov3': dict(model_type='dinov3_vit', patch_size=16, intermediate_size=64, num_register_tokens=4, **SMALL),
}


def build(**options):
    return MODELS.build(dict(type='vt.HuggingFaceBackbone') | options)


@pytest.mark.parametrize('name', DINO)
def test_maps_and_vectors_are_those_of_transformers_with_the_weights_of_a_folder(name, tmp_path):
    config = transformers.AutoConfig.for_model(**DINO[name])
    whole = transformers.AutoModel.from_config(config).eval()
    whole.save_pretrained(tmp_path)
    maps = build(pretrained=str(tmp_path), out_indices=(1, 3)).eval()
    vector = build(pretrained=str(tmp_path), config=DINO[name], out_type='vector').eval()
    for backbone in (maps, vector):
        backbone.init_weights()
    patch = config.patch_size
    images = torch.randn(2, 3, 3 * patch, 4 * patch)
    expected = whole(images, output_hidden_states=True)
    tokens = expected.last_hidden_state[:, -12:]  # rows of 4 patches
    torch.testing.assert_close(maps(images)[1], tokens.unflatten(1, (3, 4)).permute(0, 3, 1, 2))
    torch.testing.assert_close(vector(images)[0], expected.last_hidden_state[:, 0])
    norm = whole.layernorm if name == 'dinov2' else whole.norm
    first = norm(expected.hidden_states[1][:, -12:]).unflatten(1, (3, 4)).permute(0, 3, 1, 2)
    torch.testing.assert_close(maps(images)[0], first)
    with pytest.raises(
        UserError, match=f'not divisible by the patch size {patch}: .* {4 * patch + 3} to {4 * patch} or'
    ):
        maps(torch.randn(1, 3, patch, 4 * patch + 3))


@pytest.mark.parametrize('name', DINO)
def test_vt_modules_and_a_linear_head_learn_on_frozen_maps(name):
    frozen = dict(type='vt.FrozenBackbone', backbone=dict(type='vt.HuggingFaceBackbone', config=DINO[name]))
    below = dict(type='vt.VTBackbone', backbone=frozen, in_channels=32, num_tokens=4, token_channels=16)
    for backbone, neck, width in ((frozen, 'GlobalAveragePooling', 32), (below, 'vt.TokenAverage', 16)):
        head = dict(type='LinearClsHead', num_classes=3, in_channels=width)
        model = MODELS.build(dict(type='ImageClassifier', backbone=backbone, neck=dict(type=neck), head=head)).train()
        patch = DINO[name]['patch_size']
        model(torch.randn(2, 3, 2 * patch, 2 * patch)).square().sum().backward()
        assert {module.training for key, module in model.named_modules() if 'model.' in key} == {False}
        for key, parameter in model.named_parameters():
            assert (parameter.grad is None) == ('backbone.model.' in key), key


def test_the_pyramid_is_vitdets_and_vt_fpn_stands_on_it():
    """Equations of detectron2's SimpleFeaturePyramid up to its lateral convolutions, in float64."""
    neck = MODELS.build([dict(type='vt.SimplePyramid', in_channels=16), dict(type='vt.VTFPN', **LEVELS)]).double()
    first, second = neck[0].levels[:2]
    x = torch.randn(2, 16, 5, 6, dtype=torch.double)
    finest = conv_transpose2d(x, first[0].weight, first[0].bias, stride=2).movedim(1, -1)
    finest = gelu(layer_norm(finest, (8,), first[1].weight, first[1].bias, 1e-6)).movedim(-1, 1)
    expected = [
        conv_transpose2d(finest, first[3].weight, first[3].bias, stride=2),
        conv_transpose2d(x, second.weight, second.bias, stride=2),
        x,
        max_pool2d(x, 2),
    ]
    for level, wanted in zip(neck[0]((x / 2, x)), expected):
        torch.testing.assert_close(level, wanted)
    outs = neck((x,))
    assert [tuple(out.shape) for out in outs] == [(2, 12, *size) for size in ((20, 24), (10, 12), (5, 6), (2, 3))]
    sum(out.square().sum() for out in outs).backward()
    assert all(parameter.grad is not None for parameter in neck.parameters())


LEVELS = dict(in_channels=[4, 8, 16, 16], out_channels=12, token_channels=8, num_tokens=3, groups=1)


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({}, 'set pretrained to the name of a model, or config.model_type'),
        (dict(config=dict(model_type='timm_backbone')), 'mmpretrain.TIMMBackbone'),
        (dict(config=dict(model_type='bert')), 'bert: Unrecognized configuration class'),
        (dict(config=DINO['dinov2'], out_indices=(1,), out_type='vector'), 'has no effect'),
        (dict(pretrained='/nowhere/at/all'), '/nowhere/at/all: '),
    ],
)
def test_what_transformers_has_not_is_one_line(options, words):
    with pytest.raises(UserError, match=words) as error:
        build(**options)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('name', DINO)
def test_learning_rates_decay_by_the_layers_of_an_encoder(name):
    depths = layer_depths(build(config=DINO[name]))
    found = {number: depths[key] for key in depths for number in re.findall(r'\.layer\.(\d)\.', key)}
    assert found == {'0': 1, '1': 2, '2': 3}
    outside = [key for key in depths if '.layer.' not in key]
    assert {depths[key] for key in outside if 'embeddings' in key} == {0}
    assert {depths[key] for key in outside if 'embeddings' not in key} == {4}  # the last normalisation
