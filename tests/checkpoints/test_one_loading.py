"""One loading for ``init_cfg``, ``load_from``, tests and models by name: positions, whole backbones, channels."""

import pytest
import torch
from checkpoints.small_models import load_part
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.registry import init_default_scope
from mmpretrain.models.backbones import ResNet
from mmpretrain.registry import MODELS
from timm.models import adapt_input_conv
from torch import nn
from torch.nn.functional import interpolate

from vt.apis import get_model
from vt.checkpoints.formats.recognise import adapt_channels
from vt.checkpoints.grids import FileGrids, read_image_size
from vt.checkpoints.loading import weights_only
from vt.checkpoints.reading import read
from vt.checkpoints.weights import load_own_parts, load_weights
from vt.errors import UserError

THREE = dict(num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2,))


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmpretrain')


@pytest.fixture
def lines(monkeypatch):
    """What the log says of each loading."""
    lines = []
    monkeypatch.setattr('vt.checkpoints.weights.logger.info', lines.append)
    return lines


def vit_config(size):
    """A small transformer of patches of 4x4 pixels."""
    stage = dict(channels=16, depth=1, num_heads=2, embed=dict(type='vt.PatchEmbed', kernel_size=4))
    stage |= dict(position=dict(type='vt.AbsolutePosition'), class_tokens=1)
    return dict(type='vt.TokenBackbone', image_size=size, stages=[stage], out_type='tokens')


def vit(size):
    torch.manual_seed(sum(size))
    return MODELS.build(vit_config(size))


def save(path, model, below='', text=None, **more):
    state = {f'{below}{name}': tensor for name, tensor in model.state_dict().items()}
    torch.save(dict(state_dict=state, meta={} if text is None else dict(cfg=text), **more), path)
    return str(path)


def positions(model):
    return model.stages[0].position.vectors.detach()


def resized(vectors, size, to):
    """Row by row on a grid, bicubically, smoothed where a side becomes shorter; the class token as it is."""
    maps = vectors[:, 1:].reshape(1, *size, -1).permute(0, 3, 1, 2)
    smooth = any(new < old for new, old in zip(to, size))
    maps = interpolate(maps, to, mode='bicubic', antialias=smooth, align_corners=False)
    return torch.cat([vectors[:, :1], maps.permute(0, 2, 3, 1).reshape(1, to[0] * to[1], -1)], dim=1)


TEXT = 'model = dict(\n    backbone=dict(\n        image_size=(\n            64,\n            16,\n        ), type=5))'


@pytest.mark.parametrize(
    ('trained', 'built', 'options', 'text'),
    [
        ((64, 16), (16, 64), dict(), TEXT),  # as many positions, on another grid
        ((64, 16), (16, 64), dict(grid=(16, 4)), None),
        ((32, 32), (16, 64), dict(grid=(8, 8)), None),
        ((32, 32), (64, 64), dict(), None),
        ((64, 16), (64, 16), dict(), TEXT),
    ],
)
def test_positions_of_a_known_grid_are_resized(trained, built, options, text, tmp_path):
    source, model = vit(trained), vit(built)
    file = save(tmp_path / 'a.pth', source, 'backbone.', text)
    model.init_cfg = dict(type='Pretrained', checkpoint=file, **options)
    model.init_weights()
    grids = [tuple(side // 4 for side in size) for size in (trained, built)]
    expected = positions(source) if trained == built else resized(positions(source), *grids)
    assert torch.equal(positions(model), expected)


@pytest.mark.parametrize(
    ('trained', 'built', 'options', 'words'),
    [
        (
            (64, 16),
            (16, 64),
            dict(),
            r'64 positions is unknown, and the model has 4x16: set grid=\(height, width\), next',
        ),
        ((32, 32), (16, 64), dict(), 'the grid of its 64 positions is unknown, and the model has 4x16: set'),
        (
            (64, 16),
            (32, 32),
            dict(grid=(8, 4)),
            r'its 64 positions is not \(8, 4\), as set by grid, and the model has 8x8',
        ),
    ],
)
def test_a_grid_is_not_guessed(trained, built, options, words, tmp_path):
    with pytest.raises(UserError, match=words) as raised:
        load_part(vit(built), save(tmp_path / 'a.pth', vit(trained)), **options)
    assert '\n' not in str(raised.value)


def test_frames_are_not_guessed():
    """Eight frames of 2x2 are as many as two of 4x4; the grid of the first positions gives that of coarser stages."""
    for known, expected in (
        (FileGrids(given=(2, 4, 4)), (2, 4, 4)),
        (FileGrids(None, (4, 8, 8), (16, 4, 4)), (2, 4, 4)),
        (FileGrids(is_same_model=True), (8, 2, 2)),
    ):
        assert known.find((8, 2, 2), 32) == expected
    with pytest.raises(UserError, match=r'32 positions is unknown, .* grid=\(frames, height, width\)'):
        FileGrids().find((8, 2, 2), 32)
    grids = FileGrids(given=(28, 14))
    assert [grids.find((56, 56), 28 * 14), grids.find((28, 28), 14 * 7)] == [(28, 14), (14, 7)]


@pytest.mark.parametrize(
    ('text', 'size'),
    [
        ('image_size=224', (224, 224)),
        ('image_size=[16, 8, 8,\n]', (16, 8, 8)),
        ('image_size=(\n    16,\n    8,\n), image_size=(16, 8)', (16, 8)),
        ('image_size=' + 500 * '9', None),
    ],
)
def test_an_image_size_is_read_of_a_configs_text(text, size, tmp_path):
    assert read_image_size(text) == size
    torch.save(dict(state_dict=dict(a=torch.ones(1)), meta=dict(cfg=text)), tmp_path / 'a.pth')
    assert read(tmp_path / 'a.pth').image_size() == size


def classifier(size, classes=3):
    backbone = vit_config(size) | dict(out_type='class_tokens')
    head = dict(type='LinearClsHead', num_classes=classes, in_channels=16)
    return MODELS.build(dict(type='ImageClassifier', backbone=backbone, head=head))


def test_load_from_is_init_cfg_bit_by_bit_and_both_say_what_they_do(tmp_path, lines):
    trained, loaded = classifier((64, 16)), classifier((32, 48), classes=2)
    file = save(tmp_path / 'a.pth', trained, text=TEXT)
    load_part(loaded, file)
    begun = vit((32, 48))
    begun.init_cfg = dict(type='Pretrained', checkpoint=file)
    begun.init_weights()
    for name, tensor in begun.state_dict().items():
        assert torch.equal(loaded.backbone.state_dict()[name], tensor), name
    assert torch.equal(positions(loaded.backbone), resized(positions(trained.backbone), (16, 4), (8, 12)))
    for line, prefix, new in zip(lines, ('backbone.', ''), ('2 (head.*)', 'none'), strict=True):
        changes = f'resized: 1 ({prefix}stages.0.position.vectors from 16x4 to 8x12)'
        left = f'new in the model: {new}; left out of the file: 2 (head.*); format: the'
        assert f'{file}: 16 tensors loaded; {changes}; {left}' in line


def test_a_whole_load_resizes_too_but_not_to_go_on(tmp_path, lines):
    source, model = (nn.ModuleDict(dict(backbone=vit(size))) for size in ((64, 16), (16, 64)))
    file = save(tmp_path / 'a.pth', source, text=TEXT)
    load_weights(model, file)
    assert torch.equal(positions(model.backbone), resized(positions(source.backbone), (16, 4), (4, 16)))
    assert 'resized: 1 (backbone.stages.0.position.vectors from 16x4 to 4x16)' in lines[0]
    same = nn.ModuleDict(dict(backbone=vit((64, 16))))
    load_weights(same, source.state_dict())  # without a config it is of this very model
    assert torch.equal(positions(same.backbone), positions(source.backbone))
    with pytest.raises(UserError, match=r'vectors has shape \(1, 65, 16\), not \(1, 33, 16\)'):
        load_weights(nn.ModuleDict(dict(backbone=vit((16, 32)))), file, resizes=False)


@pytest.mark.parametrize(
    ('keys', 'value'),
    [(('state_dict_ema', 'state_dict'), 0), (('model', 'model_ema'), 0), (('state_dict', 'ema_state_dict'), 1)],
)
def test_averages_are_named_and_can_be_chosen(keys, value, tmp_path, lines):
    states = [dict(weight=torch.full((1, 1), number), bias=torch.full((1,), number)) for number in (0.0, 1.0)]
    states[1] = {f'module.{name}': tensor for name, tensor in states[1].items()}
    states[1] |= dict(steps=torch.tensor(3)) if keys[1] == 'ema_state_dict' else {}
    torch.save(dict(zip(keys, states)), tmp_path / 'a.pth')
    model = nn.Linear(1, 1)
    load_part(model, tmp_path / 'a.pth', weights=keys[1] if value else None)
    assert model.weight.item() == model.bias.item() == value
    assert f'weights: {keys[value]} (others: {keys[1 - value]})' in lines[0]
    with pytest.raises(UserError, match=f"has no weights='other': set one of {', '.join(keys)}"):
        read(tmp_path / 'a.pth').state('other')


def begin(kind, file, **options):
    """A backbone of a library with the weights of a file."""
    init_cfg = dict(type='Pretrained', checkpoint=str(file))
    model = MODELS.build(dict(type=kind, init_cfg=init_cfg, **options))
    with weights_only():
        model.init_weights()
    return model


def test_a_deeper_resnet_is_refused_and_a_shorter_one_is_not(tmp_path):
    file = save(tmp_path / 'deep.pth', ResNet(34), 'backbone.')
    with pytest.raises(UserError, match=r'deep\.pth does not fit: .* it also has layer\d\.'):
        begin('ResNet', file, depth=18)
    with pytest.raises(UserError, match=r'deep\.pth does not fit: conv1\.weight has shape \(64, 3, 7, 7\)'):
        begin('ResNet', file, depth=34, stem_channels=32, base_channels=32)
    source = ResNet(18)
    short = begin('ResNet', save(tmp_path / 'same.pth', source), depth=18, **THREE)
    assert torch.equal(short.layer3[-1].conv2.weight, source.layer3[-1].conv2.weight)


def test_a_backbone_that_reads_its_file_itself_is_checked(tmp_path):
    """MMSegmentation's Swin only warns, and not of a missing stage."""
    init_default_scope('mmseg')
    options = dict(embed_dims=24, depths=(1, 1), num_heads=(1, 2), window_size=2, strides=(4, 2), out_indices=(0, 1))
    torch.manual_seed(0)
    state = MODELS.build(dict(type='mmseg.SwinTransformer', **options)).state_dict()
    # As MMSegmentation's own files are: the classifier's norm, no norms of outputs.
    whole = {name: tensor for name, tensor in state.items() if not name.startswith('norm')}
    whole |= {'norm.weight': torch.ones(48)}

    def begun(held):
        torch.save(dict(state_dict=held), tmp_path / 'a.pth')
        return begin('mmseg.SwinTransformer', tmp_path / 'a.pth', **options)

    lacking = {name: tensor for name, tensor in whole.items() if not name.startswith('stages.1')}
    with pytest.raises(UserError, match=r'a\.pth does not fit: .* it lacks stages\.1.* set may_differ'):
        load_own_parts(begun(lacking))
    model = begun(whole)
    weight = model.stages[0].blocks[0].attn.w_msa.qkv.weight
    weight.data.zero_()
    load_own_parts(model)
    assert torch.equal(weight, state['stages.0.blocks.0.attn.w_msa.qkv.weight'])


def test_a_model_by_name_loads_what_its_options_name(tmp_path):
    torch.manual_seed(0)
    file = save(tmp_path / 'a.pth', get_model('vt-resnet18_digits').backbone, 'backbone.')
    init_cfg = dict(type='Pretrained', checkpoint=file)
    model = get_model('vt-resnet18_digits', backbone=dict(init_cfg=init_cfg))
    expected = torch.load(file)['state_dict']
    assert all(torch.equal(tensor, expected[f'backbone.{key}']) for key, tensor in model.backbone.state_dict().items())
    with pytest.raises(UserError, match=r'init_cfg \(.*a\.pth\) and pretrained \(other\.pth\) both set all weights'):
        get_model('vt-resnet18_digits', 'other.pth', backbone=dict(init_cfg=init_cfg))


SMALL = dict(channels=16, depths=(1, 1))
# Backbones, and the convolution of each that takes the image.
BACKBONES = {
    'VT-ResNet': (dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=32), 'conv1'),
    'ResNet-D': (dict(type='ResNetV1d', depth=50), 'stem.0.conv'),
    'DeiT': (vit_config((32, 32)), 'stages.0.embed.projection'),
    'MViT, videos': (dict(type='vt.MViT', arch=SMALL, image_size=32, num_frames=4), 'stages.0.embed.projection'),
}


def adapted(weight, number):
    """Channels 0, 1, 2, 0, 1, ... in their sum, or all summed into one."""
    if number == 1:
        return weight.sum(dim=1, keepdim=True)
    return torch.stack([weight[:, index % 3] for index in range(number)], dim=1) * 3 / number


@settings(max_examples=30)
@given(st.integers(1, 13), st.sampled_from([(8, 3, 7, 7), (5, 3, 4, 4), (6, 3, 3, 7, 7)]), st.integers(0, 99))
def test_channels_are_adapted_as_timm_does(number, shape, seed):
    """An image whose channels are equal gives the same as before, if these weigh the same."""
    weight = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    own = adapt_channels(weight, number)
    torch.testing.assert_close(own, adapted(weight, number), rtol=1e-15, atol=1e-15)
    # timm's is of two dimensions, those of a cube are one for it, and its result is in float32
    theirs = adapt_input_conv(number, weight.float().flatten(3)).reshape(own.shape)
    torch.testing.assert_close(own.float(), theirs, rtol=1e-6, atol=1e-6)
    gray = weight.mean(dim=1, keepdim=True).expand_as(weight)
    torch.testing.assert_close(adapt_channels(gray, number).sum(dim=1), gray.sum(dim=1), rtol=1e-12, atol=1e-12)


def build(config, **options):
    torch.manual_seed(len(options))
    backbone = MODELS.build(config | options)
    backbone.eval()  # MMPretrain's returns nothing
    return backbone


@pytest.mark.parametrize('number', [1, 4, 13])
@pytest.mark.parametrize('name', BACKBONES)
def test_a_stem_answers_a_constant_image_as_before(name, number, lines):
    config, stem = BACKBONES[name]
    file, model = build(config), build(config, in_channels=number)
    assert load_part(model, dict(state_dict=file.state_dict())) == file.state_dict().keys()
    old, new = (backbone.get_submodule(stem).weight.double() for backbone in (file, model))
    torch.testing.assert_close(new, adapted(old, number), rtol=1e-6, atol=1e-7)
    how = 'summed' if number == 1 else 'repeated and scaled'
    assert f'channels: {stem}.weight from 3 to {number}, {how}' in lines[0]
    model(torch.ones(1, number, *[32] * (old.ndim - 2)))


def test_files_of_other_numbers_than_three_are_refused():
    config, _ = BACKBONES['DeiT']
    file, model = build(config, in_channels=4), build(config, in_channels=2)
    with pytest.raises(UserError, match=r'has shape .*, not'):
        load_part(model, dict(state_dict=file.state_dict()))
