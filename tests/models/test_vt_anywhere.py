"""VT modules at any stage of a ResNet, and on any backbone: shapes, costs, weights, layers, freezing, the start."""

import re

import pytest
import torch
from comparisons import assert_all_learn, assert_is_not_saturated
from mmpretrain.models import ResNet
from mmpretrain.models.backbones.resnet import BasicBlock, Bottleneck
from mmpretrain.registry import MODELS
from tool_runner import ROOT

import vt
from docs.reports.complexity import count_config
from vt.engine.counting import count_complexity
from vt.models import VTBackbone, VTModule, VTResNet
from vt.models.visual_transformers.map_scale import predict_rms
from vt.models.visual_transformers.vt_stage import MAP_RMS, VTStage

pytestmark = pytest.mark.usefixtures('either_library')
PAGE = ROOT / 'docs/how-to/other-backbones.md'
SMALL = dict(num_tokens=4, token_channels=32)
PATCHES = [dict(type='vt.PatchEmbed', kernel_size=size, stride=size) for size in (4, 2, 2)]
REDUCED = dict(type='vt.ReducedAttention', reduce=dict(type='vt.StridedReduction', ratio=2))
PVT = dict(depth=1, num_heads=1, attention=REDUCED)
PVT = [PVT | dict(channels=8 * 2**stage, embed=patch) for stage, patch in enumerate(PATCHES)]
TOKENS = dict(type='vt.TokenBackbone', out_type='map', image_size=64)
CONVNEXT = dict(type='ConvNeXt', arch='atto', gap_before_final_norm=False)
SWIN_ARCH = dict(embed_dims=24, depths=[1, 1, 2, 1], num_heads=[1, 2, 2, 2])
SWIN = dict(type='SwinTransformer', arch=SWIN_ARCH, window_size=2)
TIMM = dict(type='TIMMBackbone', model_name='convnext_atto', features_only=True)
# Each whole backbone, its form up to stage 4, what is dropped then, and that stage's channels.
FOREIGN = {
    'convnext': (CONVNEXT, dict(out_indices=[2]), ('downsample_layers.3', 'stages.3'), 160),
    'swin': (SWIN, dict(out_indices=(2,), arch=SWIN_ARCH | dict(depths=[1, 1, 2], num_heads=[1, 2, 2])), (), 96),
    'regnet': (dict(type='RegNet', arch='regnetx_400mf'), dict(out_indices=(2,)), ('layer4',), 160),
    'pvt': (TOKENS | dict(stages=[*PVT, PVT[-1] | dict(channels=64)]), dict(stages=PVT), (), 32),
    'timm': (TIMM, dict(out_indices=(2,)), (), 160),
}


def build(name, **options):
    whole, shorter, drop, channels = FOREIGN[name]
    return VTBackbone(whole | shorter, channels, drop=drop, **SMALL | options)


def build_whole(name):
    backbone = MODELS.build(FOREIGN[name][0])
    backbone.init_weights()
    return backbone


@pytest.mark.parametrize('name', FOREIGN)
def test_a_backbone_without_its_last_stage_costs_less_and_keeps_no_idle_part(name):
    torch.manual_seed(0)
    model, images = build(name), torch.randn(2, 3, 64, 64)
    model.init_weights()
    (tokens,) = model(images)
    assert tokens.shape == (2, 4, 32)
    tokens.square().sum().backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
    before, after = (count_complexity(part, images[:1]) for part in (build_whole(name), model.backbone))
    assert after.flops < before.flops
    assert after.parameters < 0.8 * before.parameters


ROWS = re.findall(r'\(([^()]+_(?:digits|in1k)\.py)\) \| ([\d.| ]+) \|$', PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(('config', 'cells'), ROWS)
def test_the_page_tells_what_models_cost(config, cells):
    assert len(ROWS) == 10
    if config.endswith('digits.py'):  # with the last stage and without, FLOPs and parameters
        side, unit, error, (_, flops, _, parameters) = 64, 1e6, 0.05, map(float, cells.split('|'))
    else:
        side, unit, error, (flops, parameters) = 224, 1e9, 0.005, map(float, cells.split('|'))
    cost, _ = count_config(PAGE.parent / config, (side, side))
    assert flops == pytest.approx(cost.flops / unit, abs=error)
    assert parameters == pytest.approx(cost.parameters / 1e6, abs=0.05)


@pytest.mark.parametrize('name', ['convnext', 'swin'])
def test_the_weights_of_the_rest_load(name, tmp_path):
    torch.manual_seed(0)
    whole = build_whole(name)
    state = {f'backbone.{key}': tensor for key, tensor in whole.state_dict().items()}
    torch.save(dict(state_dict=state), tmp_path / 'weights.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'), prefix='backbone.')
    backbone, shorter, drop, channels = FOREIGN[name]
    model = VTBackbone(backbone | shorter | dict(init_cfg=init_cfg), channels, drop=drop, **SMALL)
    model.init_weights()
    own, theirs = model.backbone.state_dict(), whole.state_dict()
    new = [key for key in own if key not in theirs]
    assert all(key.startswith('norm2') for key in new)  # of the map that comes out, nothing else
    assert all(torch.equal(own[key], theirs[key]) for key in own if key not in new)
    if name == 'convnext':  # a left out stage changes nothing before it
        earlier = MODELS.build(backbone | dict(out_indices=[2]))
        earlier.load_state_dict(theirs, strict=False)
        images = torch.randn(2, 3, 64, 64)
        torch.testing.assert_close(model.backbone(images)[0], earlier(images)[0], rtol=0, atol=0)


def test_maps_in_place_of_the_last_stage_and_behind_it():
    images = torch.randn(2, 3, 64, 64)
    options = dict(out_type='featmap', drop=('downsample_layers.3', 'stages.3'), **SMALL)
    maps = VTBackbone(CONVNEXT | dict(out_indices=[0, 1, 2]), 160, out_indices=(0, 1, 2, 3), **options)(images)
    assert [tuple(x.shape[1:]) for x in maps] == [(40, 16, 16), (80, 8, 8), (160, 4, 4), (160, 4, 4)]
    assert not torch.equal(maps[2], maps[3])
    options = dict(out_type='featmap', num_modules=3, drop_path_rate=0.3, **SMALL)
    behind = VTBackbone(dict(type='RegNet', arch='regnetx_400mf'), 384, **options)
    assert [module.projector.drop_path.drop_prob for module in behind.stage] == pytest.approx([0.1, 0.2, 0.3])
    assert [tuple(x.shape[1:]) for x in behind(images)] == [(384, 2, 2)]


def test_what_is_frozen_stays_so():
    whole, shorter, drop, channels = FOREIGN['regnet']
    own = VTBackbone(whole | shorter | dict(frozen_stages=2), channels, drop=drop, **SMALL).train()
    still = {name.split('.')[1] for name, parameter in own.named_parameters() if not parameter.requires_grad}
    assert still == {'conv1', 'bn1', 'layer1', 'layer2'}
    for frozen_stages, parts in ((-1, set()), (0, {'backbone'}), (1, {'backbone', 'norm', 'stage'})):
        model = build('regnet', frozen_stages=frozen_stages).train()
        assert {name.split('.')[0] for name, p in model.named_parameters() if not p.requires_grad} == parts
        assert {name for name, part in model.named_children() if not part.training} == parts
        assert model.training


@pytest.mark.parametrize(('name', 'scale'), [('convnext', 1e-3), ('regnet', 1), ('regnet', 1e3)])
def test_modules_start_calmly_on_a_map_of_any_scale(name, scale):
    torch.manual_seed(0)
    model = build(name, num_tokens=16, token_channels=256)
    model.init_weights()
    model.backbone.register_forward_hook(lambda part, inputs, maps: tuple(x * scale for x in maps))
    with torch.no_grad(), vt.record_attention(model) as records:
        (tokens,) = model(torch.randn(4, 3, 64, 64))
    assert 0.01 < tokens.square().mean().sqrt() < 1
    assert_is_not_saturated(records)


PLACES = [('layer1',), ('layer3',), ('after_layer2',), ('after_layer4',), ('layer2', 'after_layer3', 'layer4'), ()]


@pytest.mark.parametrize('positions', PLACES)
def test_modules_stand_at_any_stage_of_a_resnet_and_read_a_small_map(positions):
    """As built, and with drawn weights."""
    torch.manual_seed(0)
    options = dict(out_type='featmap', out_indices=(0, 1, 2, 3), strides=(1, 2, 2, 2), zero_init_residual=False)
    model = VTResNet(18, **SMALL, positions=positions, num_modules=3, **options).double()
    found, images = [], torch.randn(4, 3, 64, 64, dtype=torch.float64)
    stages = [part for part in model.modules() if isinstance(part, VTStage)]
    assert sum(map(len, stages)) == 3 * len(positions)
    for part in stages:
        part.register_forward_pre_hook(lambda part, inputs: found.append(inputs[0].square().mean().sqrt().item()))
    with torch.no_grad():
        model(images)
    model.init_weights()
    maps = model(images)
    assert found == pytest.approx([MAP_RMS] * 2 * len(positions), rel=0.2)
    channels, last = (256, 4) if 'layer4' in positions else (512, 2)
    assert [tuple(x.shape[1:]) for x in maps] == [(64, 16, 16), (128, 8, 8), (256, 4, 4), (channels, last, last)]
    sum(x.square().sum() for x in maps).backward()
    assert_all_learn(model)


def test_a_resnets_weights_fill_the_other_stages(tmp_path):
    torch.manual_seed(0)
    positions = ('layer2', 'after_layer3')
    source = ResNet(18)
    torch.save(source.state_dict(), tmp_path / 'weights.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'))
    model = VTResNet(18, **SMALL, positions=positions, out_type='featmap', init_cfg=init_cfg)
    model.init_weights()
    theirs, own = source.state_dict(), model.state_dict()
    new = [name for name in own if name not in theirs]
    assert all(name.startswith(tuple(f'{stage}.' for stage in model.vt_stages.values())) for name in new)
    assert torch.equal(own['layer1.1.conv2.weight'], theirs['layer1.1.conv2.weight'])
    again = VTResNet(18, **SMALL, positions=positions, out_type='featmap', init_cfg=init_cfg)
    torch.save({f'backbone.{name}': tensor for name, tensor in own.items()}, tmp_path / 'weights.pth')
    again.init_weights()  # what was trained here is loaded as it is
    assert all(torch.equal(tensor, own[name]) for name, tensor in again.state_dict().items())


def test_a_scaled_stage_leaves_the_stage_behind_it_as_it_was():
    """In evaluation mode too: the normalisations that read the map take the factor out."""
    torch.manual_seed(0)
    source, images = ResNet(18, zero_init_residual=False), torch.randn(4, 3, 64, 64)
    source.init_weights()
    source(images)  # running statistics
    source.eval()
    model = VTResNet(18, **SMALL, positions=('after_layer2',), out_type='featmap', projector=None)
    model.load_state_dict(source.state_dict(), strict=False)
    model.start('after_layer2')
    assert predict_rms(list(model.layer2)[:-1]) == pytest.approx(MAP_RMS)
    torch.testing.assert_close(model.eval()(images)[-1], source(images)[-1], rtol=1e-2, atol=1e-3)


RESNETS = {
    'ResNet-18': lambda: VTResNet(18, **SMALL, positions=('layer2', 'after_layer3'), out_type='featmap'),
    'ResNet-50': lambda: VTResNet(50, **SMALL, positions=('layer3', 'layer4'), out_type='featmap'),
}


@pytest.mark.parametrize('name', [*FOREIGN, *RESNETS])
def test_layers_are_counted_in_the_order_of_the_network(name):
    """From the image to the head; each block and each module by itself."""
    model = RESNETS[name]() if name in RESNETS else build(name)
    found = {key: model.get_layer_depth(f'backbone.{key}', 'backbone.') for key, _ in model.named_parameters()}
    (number,) = {number for _, number in found.values()}
    depths = {key: depth for key, (depth, _) in found.items()}
    assert {*depths.values()} == set(range(number - 1))
    assert model.get_layer_depth('head.fc.weight', 'backbone.') == (number - 1, number)
    blocks, order = [], []
    for key, part in model.named_modules():
        of_part = [depth for own, depth in depths.items() if own.startswith(f'{key}.')]
        if isinstance(part, (BasicBlock, Bottleneck, VTModule)):
            blocks += set(of_part)
        elif of_part and not list(part.children()):
            part.register_forward_pre_hook(lambda *_, depth=of_part[0]: order.append(depth))
    model(torch.randn(2, 3, 64, 64))
    assert order == sorted(order)
    assert blocks == [*range(number - 1 - len(blocks), number - 1)]
