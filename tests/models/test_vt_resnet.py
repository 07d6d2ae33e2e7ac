"""VT-ResNet, of both versions of the paper: shapes, freezing, pretrained weights, the start, training from scratch."""

import pytest
import torch
import torchvision
from comparisons import assert_is_not_saturated
from imagenet_like import resnet_of_scale
from mmengine.config import Config
from mmpretrain.models import ResNet, ResNet_CIFAR
from mmpretrain.registry import MODELS
from page_blocks import read_blocks
from tool_runner import ROOT
from torch import nn

import vt
from vt.engine.counting import count_complexity
from vt.models import PositionEncoder, TokenAverage, ValueTransformer, VTResNet, VTResNetCIFAR
from vt.models.visual_transformers.map_scale import predict_rms, scale_output
from vt.models.visual_transformers.vt_resnet import MAP_RMS

pytestmark = pytest.mark.usefixtures('either_library')
THREE_STAGES = dict(num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(0, 1, 2))
SMALL = dict(num_tokens=4, token_channels=32)


@pytest.mark.parametrize(('depth', 'modules', 'channels'), [(18, 2, 256), (34, 3, 256), (50, 3, 1024)])
def test_stage_5_is_replaced_by_the_papers_number_of_modules(depth, modules, channels):
    model = VTResNet(depth, **SMALL)
    assert len(model.layer4) == modules
    assert model.layer4[0].tokenizer.weight.shape == (4, channels)
    assert [type(module.tokenizer).__name__ for module in model.layer4[1:]] == ['RecurrentTokenizer'] * (modules - 1)
    resnet = dict(ResNet(depth).named_parameters())
    for name, parameter in model.named_parameters():
        assert name.startswith('layer4') or resnet[name].shape == parameter.shape


@pytest.mark.parametrize('size', [(32, 32), (33, 61)])
def test_any_input_size_gives_tokens_and_maps(size):
    images = torch.randn(2, 3, *size)
    (tokens,) = VTResNet(18, **SMALL)(images)
    assert tokens.shape == (2, 4, 32)
    (average,) = TokenAverage()((tokens,))
    torch.testing.assert_close(average, tokens.mean(1))
    maps = VTResNet(18, **SMALL, out_type='featmap', out_indices=(0, 1, 2, 3))(images)
    strides = (4, 8, 16, 16)
    assert [x.shape[1] for x in maps] == [64, 128, 256, 256]
    for x, stride in zip(maps, strides):
        assert x.shape[2:] == tuple(-(-side // stride) for side in size)
    assert not torch.equal(maps[2], maps[3])


def test_for_small_images_it_is_resnet_cifar_up_to_stage_4():
    size = 8, 13
    model = VTResNetCIFAR(18, **SMALL, out_type='featmap', out_indices=(0, 1, 2, 3))
    resnet = ResNet_CIFAR(18, **THREE_STAGES)
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith('layer4.')}
    resnet.load_state_dict(weights, strict=True)
    images = torch.randn(2, 3, *size)
    *maps, refined = model(images)
    torch.testing.assert_close(maps, list(resnet(images)), rtol=0, atol=0)
    assert refined.shape == maps[2].shape
    assert maps[0].shape[2:] == size


def test_what_is_not_asked_for_is_not_returned_and_not_built_in_vain():
    images = torch.randn(1, 3, 32, 32)
    assert [x.shape[1] for x in VTResNet(18, **SMALL, out_type='featmap', out_indices=(0, 3))(images)] == [64, 256]
    assert VTResNet(18, **SMALL, strides=(1, 1, 1))(images[..., :8, :8])[0].shape == (1, 4, 32)  # the smallest input
    truncated = VTResNet(18, **SMALL, out_type='featmap', out_indices=(1,))
    assert [x.shape[1] for x in truncated(images)] == [128]
    assert len(truncated.layer4) == 0
    assert not list(VTResNet(18, **SMALL).layer4[-1].projector.parameters())
    assert list(VTResNet(18, **SMALL, out_type='featmap').layer4[-1].projector.parameters())


@pytest.mark.parametrize(
    ('frozen_stages', 'positions'),
    [*((stage, ('layer4',)) for stage in (-1, 0, 2, 4)), (3, ('layer3',)), (2, ('after_layer2',))],
)
def test_frozen_stages_are_not_trained(frozen_stages, positions):
    options = dict(positions=positions, out_type='featmap')
    model = VTResNet(18, **SMALL, **options, frozen_stages=frozen_stages).train()
    for name, parameter in model.named_parameters():
        stage = int(name[5]) if name.startswith('layer') else 0
        assert parameter.requires_grad == (stage > frozen_stages), name
    assert model.layer1.training == (frozen_stages < 1)
    for name in model.vt_stages.values():
        assert model.get_submodule(name).training == (frozen_stages < int(name[5]))
    assert model.train() is model


def test_stochastic_depth_grows_over_blocks_and_modules():
    model = VTResNet(18, **SMALL, drop_path_rate=0.7)
    stages = model.layer1, model.layer2, model.layer3
    rates = [block.drop_path.drop_prob for stage in stages for block in list(stage)[1:]]
    rates += [module.relation.drop_path.drop_prob for module in model.layer4]
    assert rates == pytest.approx([0.1, 0.3, 0.5, 0.6, 0.7])
    assert model.layer4[0].projector.drop_path.drop_prob == pytest.approx(0.6)
    model = VTResNet(18, **SMALL, drop_path_rate=0.7, positions=('layer2',), out_type='featmap')
    rates = [model.layer1[1].drop_path.drop_prob, model.layer2[-1][1].projector.drop_path.drop_prob]
    rates += [model.layer3[0].drop_path.drop_prob, model.layer4[1].drop_path.drop_prob]
    assert rates == pytest.approx([0.1, 0.3, 0.4, 0.7])


SOURCES = {  # a network, and the prefix of its weights
    'torchvision': (torchvision.models.resnet18, ''),
    'prefix': (lambda: ResNet(18), 'encoder.'),
}


@pytest.mark.parametrize('kind', SOURCES)
def test_pretrained_weights_fill_the_convolutional_stages(tmp_path, kind):
    torch.manual_seed(1)
    build, prefix = SOURCES[kind]
    theirs = build().state_dict()
    state = {f'{prefix}{name}': tensor for name, tensor in theirs.items()}
    torch.save(dict(state_dict=state) if prefix else state, tmp_path / 'weights.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth'))
    model = VTResNet(18, **SMALL, init_cfg=init_cfg | (dict(prefix=prefix) if prefix else {}))
    model.init_weights()
    loaded, ours, images = ResNet(18, **THREE_STAGES), model.eval(), torch.randn(2, 3, 32, 32)
    loaded.load_state_dict(theirs, strict=False)
    loaded.eval()  # MMPretrain's returns nothing
    maps = loaded(images)
    x = ours.maxpool(ours.relu(ours.norm1(ours.conv1(images))))
    for stage, expected in zip((ours.layer1, ours.layer2), maps):
        x = stage(x)
        assert torch.equal(x, expected)
    factor = MAP_RMS / predict_rms(loaded.layer3)
    torch.testing.assert_close(ours.layer3(x), factor * maps[2], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(('depth', 'map_scale'), [(18, 0.1), (18, 10), (50, 1)])
def test_the_maps_size_is_told_from_weights_and_set_without_a_trace(depth, map_scale):
    torch.manual_seed(0)
    source, images = resnet_of_scale(depth, map_scale, **THREE_STAGES)
    with torch.no_grad():
        x = source(images)[-1]
        predicted = predict_rms(source.layer3)
        assert predicted == pytest.approx(x.square().mean().sqrt().item(), rel=0.2)
        source.eval()
        x = source(images)[-1]
        scale_output(source.layer3, 0.2 / predicted)
        torch.testing.assert_close(source(images)[-1], x * (0.2 / predicted), rtol=0.05, atol=0.01)  # but for epsilon


STARTS = ('built', 'scratch', 'small', 'as ImageNet', 'large')
OF_DEPTHS = [(50, 'built'), (50, 'as ImageNet'), (101, 'scratch')]


@pytest.mark.parametrize(('depth', 'start'), [*((18, start) for start in STARTS), *OF_DEPTHS])
def test_every_depth_starts_with_calm_tokens(depth, start, tmp_path):
    """As built, too: a loop of one's own may not call ``init_weights``."""
    torch.manual_seed(0)
    model, images = VTResNet(depth), torch.randn(4, 3, 64, 64)
    if start not in ('built', 'scratch'):
        source, images = resnet_of_scale(depth, {'small': 0.1, 'as ImageNet': 1, 'large': 10}[start])
        torch.save(source.state_dict(), tmp_path / 'weights.pth')
        model = VTResNet(depth, init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.pth')))
    if start != 'built':
        model.init_weights()
    assert predict_rms(model.layer3) == pytest.approx(MAP_RMS)
    (tokens,) = model(images)
    assert 0.05 < tokens.square().mean().sqrt() < 1
    with vt.record_attention(model) as records:
        model(images)
    assert_is_not_saturated(records)


def test_the_map_is_scaled_once_whether_or_not_weights_are_drawn_again():
    model = VTResNet(18, **SMALL)
    assert all(norm.running_var.eq(1).all() for norm in model.modules() if isinstance(norm, nn.BatchNorm2d))
    model.init_weights()
    factor = model.layer3[0].downsample[-1].weight[0].item()
    assert factor == pytest.approx(MAP_RMS / 0.671, rel=1e-3)
    assert model.layer3[1].norm1.running_var[0].item() == pytest.approx(factor**2, rel=1e-3)


def test_it_trains_in_the_loop_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    (block,) = (block.text for block in read_blocks(ROOT / 'docs/how-to/own-loop.md') if 'digits.pth' in block.text)
    names = {}
    exec(block, names)
    model = names['model'].eval()
    with torch.no_grad():
        scores = model['head'](model['backbone'](names['images'])[0].mean(dim=1))
    assert (scores.argmax(dim=1) == names['labels']).float().mean() > 0.6  # chance is 0.1


def test_the_page_tells_what_small_images_cost():
    """VT costs less than ResNet-18 where the pages recommend it: at every size with the config for small images."""
    names = ['resnet18', 'vt-resnet18', 'vt-resnet18-tuned_1xb32-90e_image-folder-64px']
    page = (ROOT / 'docs/how-to/choose-a-model.md').read_text()
    table = page.split('## Small images')[1].split('##')[0]
    rows = [line.split('|')[2:-1] for line in table.splitlines() if line.startswith('| ') and 'ResNet-18' in line]
    shown = [[float(cell.replace(',', '')) for cell in row] for row in rows]
    for name, row in zip(names, shown, strict=True):
        model = vt.apis.get_model(name, head=dict(num_classes=2))
        costs = [count_complexity(model, torch.zeros(1, 3, side, side)) for side in (32, 64, 96, 128, 224)]
        found = [*(cost.flops / 1e6 for cost in costs), costs[0].parameters / 1e6]
        assert row == pytest.approx(found, rel=1e-3, abs=0.05), name
    resnet, published, small = (torch.tensor(row) for row in shown)
    assert (small < resnet).all()
    assert (published < resnet).tolist() == [False, False, False, True, True, True]  # 'about 125'


EARLY = ROOT / 'configs/vt_early'


@pytest.mark.parametrize('depth', [18, 50])
def test_the_early_classifiers_are_the_first_versions_by_config_alone(depth):
    torch.manual_seed(0)
    backbone = MODELS.build(Config.fromfile(EARLY / f'vt-early-resnet{depth}_8xb32-90e_in1k.py').model.backbone)
    backbone.init_weights()
    tokenizers = [type(module.tokenizer).__name__ for module in backbone.layer4]
    assert tokenizers == ['FilterTokenizer'] + ['DynamicTokenizer'] * (len(tokenizers) - 1)
    assert not any(list(module.projector.parameters()) for module in backbone.layer4)
    assert {module.relation.num_heads for module in backbone.layer4} == {16}
    (tokens,) = backbone(torch.randn(2, 3, 64, 64))
    assert tokens.shape == (2, 16, 1024)
    assert 0.05 < tokens.square().mean().sqrt() < 1  # a deep stack neither grows nor shrinks


def test_the_early_segmentor_is_the_first_versions_by_config_alone():
    cfg = Config.fromfile(EARLY / 'vt-early-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py')
    neck = MODELS.build(cfg.model.neck)
    assert {type(tokenizer.position_encoder) for tokenizer in neck.tokenizers} == {PositionEncoder}
    assert isinstance(neck.relation, ValueTransformer)
    assert [(p.num_heads, p.query.groups, p.key.groups) for p in neck.projectors] == [(16, 16, 1)] * 4
    sides = (16, 8, 4, 2)
    maps = [torch.randn(1, channels, side, 2 * side) for channels, side in zip(cfg.model.neck.in_channels, sides)]
    assert [tuple(x.shape) for x in neck(maps)] == [(1, 256, side, 2 * side) for side in sides]
