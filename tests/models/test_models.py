"""One table of models, and what holds for every one: values and gradients are those of the published equations, or of
public code; gradients, samples by themselves, copies, any size, frozen stages, depths of layers, recorded attention,
graphs, recomputation; and what the published models cost.

The survey's models are narrow, two blocks a stage, over grids that are not square, one window, one sample, and other
sizes than in training.
"""

import copy
import json
import pickle
from functools import cache, partial
from inspect import signature

import published_survey as published
import pytest
import timm
import torch
from comparisons import assert_all_learn
from mmcv.cnn.bricks import DropPath
from mmengine.config import Config
from mmengine.model import convert_sync_batchnorm, revert_sync_batchnorm
from mmpretrain.models import SwinTransformer, SwinTransformerV2
from mmpretrain.registry import MODELS
from models.test_mvit import small as small_mvit
from survey_backbones import SIZES, assert_equal_with_gradients, build, randomise, read
from tool_runner import ROOT
from torch import nn

import vt
from docs.reports.references import measure_difference
from vt.apis import find_config
from vt.engine.counting import count_complexity
from vt.models import VTFPN, TokenEncoder, VTResNet, VTResNetCIFAR, optimize_for, record_attention
from vt.models.visual_transformers.vt_stage import HasVTStages

pytestmark = pytest.mark.filterwarnings('ignore:Unnecessary conv bias')  # as the authors have it
SLOW = pytest.mark.slow
EARLY = Config.fromfile(ROOT / 'configs/_base_/models/vt-early.py')
SMALL = dict(num_tokens=4, token_channels=32)
DRAWN = SMALL | dict(zero_init_residual=False)
LEVELS = [(8, 12, 8), (16, 6, 4)]  # of VT-FPN


class Modules(nn.Module):
    """Two VT modules in turn; the map and the tokens."""

    def __init__(self, **options):
        super().__init__()
        self.stage = HasVTStages(**SMALL, **options).build_stage(16, [0.0, 0.0], 'featmap')

    def forward(self, x):
        first, second = self.stage
        return second(*first(x))


# Models as they start, and the size of a sample; necks have a list of maps.
OF_VT = {
    'modules': (Modules, (16, 5, 3)),
    'early modules': (lambda: Modules(**EARLY.early_backbone), (16, 5, 3)),
    'pooling tokenizer': (lambda: vt.PoolingTokenizer(8, 12, num_tokens=4), (8, 5, 3)),
    'clustering tokenizer': (lambda: vt.ClusteringTokenizer(8, 12, num_tokens=4), (8, 5, 3)),
    'VT-ResNet': (lambda: VTResNet(18, **DRAWN), (3, 64, 64)),
    'VT-ResNet for small images': (lambda: VTResNetCIFAR(18, **DRAWN), (3, 16, 16)),
    'modules at two stages': (lambda: VTResNet(18, **DRAWN, positions=('layer2', 'layer4')), (3, 64, 64)),
    'early VT-ResNet': (lambda: VTResNet(18, **DRAWN | dict(token_channels=256), **EARLY.early_backbone), (3, 64, 64)),
    'VT-FPN': (lambda: VTFPN([8, 16], 16, token_channels=32), LEVELS),
    'VT-FPN at once': (lambda: optimize_for(VTFPN([8, 16], 16, token_channels=32)), LEVELS),
    'early VT-FPN': (lambda: VTFPN([8, 16], 32, token_channels=64, groups=1, **EARLY.early_neck), LEVELS),
    'class token': (lambda: TokenEncoder(64, num_tokens=8), [(64, 4, 5)]),
}
MVITS = {
    'MViT': {},
    'MViTv2': dict(version=2),
    'MViT of images': dict(num_frames=None),
    'MViTv2 of images': dict(version=2, num_frames=None, class_tokens=0),
    'MViT, maxima': dict(pooling='max', kernel='s+1', skip='raw'),
    'MViT, averages': dict(pooling='average', kernel='2s+1', skip='none', position=dict(type='vt.AbsolutePosition')),
    'MViT, maxima of even kernels': dict(pooling='max', kernel='s'),
    'MViT, averages of even kernels': dict(pooling='average', kernel=4, class_tokens=0, num_frames=None),
}  # fmt: skip
SURVEY_MODELS = json.loads((ROOT / 'docs/reports/survey_models.json').read_text())['models']
OWN = [name for name, entry in SURVEY_MODELS.items() if 'backbone_of' not in entry]
STAGED = [*OWN, 'hrformer-small', 'MViT', 'MViTv2 of images']
COMPILED = [*OWN, 'hrformer-small', *MVITS]
MODELS_OF_ALL = [*OF_VT, *MVITS, *OWN]
# Biases that all logits of a softmax share, and those that ResT's attention cancels, whose normalised rows sum to 0.
CANCELLED = r'(pool_key\.norm|part\.(key|mix\.0|key_value|reduce\.norm)|tokenizer\.maps\.3)\.bias|bias\.from_messenger'


def on(size, batch=2, stages=None, built=None, training=False):
    """A comparison of a network, or of some of its stages, with its equations, on images or maps of a size.

    Built for the same size or another, and by the statistics of the batch if in training.
    """
    return stages, batch, built or size, size, training


# Another grid than in training is padded to whole windows; stripes are as long as the grid.
FOUR = [0, 1, 2, 3]
WINDOWED = on((128, 96), 1, FOUR), on((100, 75), 1, FOUR, built=(224, 224))
# Of each model its equations, what leaves it, and where the two are compared: all of a grid, one token, one window,
# a side shorter than a window, remainders that are cropped. Of some the heads of each stage, and the last drop rate.
EQUATIONS = {
    'pvt-small': (published.pvt, 'class_tokens', [
        on((64, 96)), on((69, 103), 1), on((2, 2), 1, stages=[3])], (1, 2, 5, 8), 0.1),
    'rest-small': (published.rest, 'average', [
        on((51, 70), 1), on((5, 8), 3, stages=[2, 3]), on((64, 96), training=True),
        on((51, 70), 1, built=(64, 64))], (1, 2, 4, 8), 0.1),
    'cswin-tiny': (published.cswin, 'average', [
        on((14, 28), stages=[2, 3]), on((14, 14), 1, stages=[2]), *WINDOWED], (2, 4, 8, 16), 0.2),
    'ceit-small': (published.ceit, 'layers', [on((32, 48)), on((48, 32), 1, training=True)], (6,), 0.1),
    'cpvt-small-gap': (published.cpvt, 'average', [
        on((32, 48)), on((16, 16), 1), on((48, 16), 1, built=(32, 32))], (6,), 0.1),
    'p2t-small': (published.p2t, 'average', [
        on((120, 72)), on((30, 29), 1, stages=[1]), on((6, 13), 3, stages=[3]),
        on((120, 72), 1, stages=[0, 1], built=(96, 96))], (1, 2, 5, 8), 0.1),
    'shuffle-tiny': (published.shuffle, 'average', [
        on((28, 56), stages=[2, 3]), on((14, 14), 1, stages=[3]), on((56, 112), stages=[0, 1], training=True),
        *WINDOWED], (3, 6, 12, 24), 0.1),
    'gg-tiny': (published.gg, 'average', [
        on((28, 56), stages=[2, 3]), on((14, 42), 1, stages=[1]), on((6, 10), 1, stages=[3]),
        *WINDOWED], (3, 6, 12, 24), 0.2),
    'localvit-small': (published.localvit, 'class_tokens', [on((32, 48)), on((48, 32), 1, training=True)], (8,), 0.1),
    'deepvit-small': (published.deepvit, 'class_tokens', [on((32, 48)), on((48, 32), 1, training=True)], (12,), 0.2),
    't2t-vit-t-14': (published.t2t, 'class_tokens', [on((32, 48)), on((37, 50), 1)], (6,), 0.1),
    'swin-tiny': (published.swin, 'average', [
        on((28, 56), stages=[2, 3]), on((14, 14), 1, stages=[3]), on((6, 10), 1, stages=[3]),
        *WINDOWED], (3, 6, 12, 24), 0.2),
    'swinv2-tiny': (None, 'average', [], (3, 6, 12, 24), 0.2),
    'vit-rezero': (published.rezero, 'class_tokens', [on((32, 48))]),
    'vit-early-conv': (published.early_convolutions, 'class_tokens', [on((32, 48)), on((32, 48), training=True)]),
    'vit-sparse': (published.sparse, 'class_tokens', [on((96, 112))]),
    'vit-performer': (published.performer, 'class_tokens', [on((32, 48))]),
    'vit-tokenlearner': (published.token_learner, 'average', [on((32, 48))]),
    'elsa-swin-tiny': (published.elsa, 'average', [on((28, 56), stages=[2, 3]), *WINDOWED]),
    'hswin-tiny': (published.hswin, 'average', [on((14, 28), 1, stages=[3]), *WINDOWED]),
    'msg-tiny': (published.msg, 'messengers', [on((56, 112)), *WINDOWED]),
    'vitae-small': (published.vitae, 'average', [on((48, 16))]),
    'ps-vit-b14': (published.progressive_sampling, 'class_tokens', [on((32, 48)), on((32, 48), training=True)]),
    'lv-vit-small': (published.lv_vit, 'tokens', [on((32, 48)), on((32, 48), training=True)]),
}  # fmt: skip
CASES = [(name, *case) for name, row in EQUATIONS.items() for case in row[2]]


class Alone(torch.nn.Module):
    """A backbone, and a neck behind it, whose only output comes as it is."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = torch.nn.Sequential(*parts)

    def forward(self, x):
        (out,) = self.parts(x)
        return out


def heads_of(backbone):
    attentions = [stage.blocks[0].attention.part for stage in backbone.stages if len(stage.blocks)]
    return [sum(branch.num_heads for branch in getattr(part, 'branches', [part])) for part in attentions]


def assert_is_its_equations(name, backbone, batch, size, stages=None, training=False):
    """A model's backbone, or some of its stages, on random images or maps of a size."""
    equation, out_type, *_ = EQUATIONS[name]
    assert stages or backbone.out_type == out_type
    options = dict(heads=heads_of(backbone), training=training) | (dict(stages=stages) if stages else {})
    if 'built' in signature(equation).parameters:  # of the images
        options['built'] = tuple(side * (2 ** (stages[0] + 1) if stages[0] else 1) for side in backbone.image_size)

    def theirs(x, weights):
        tokens = equation(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), **options)
        if stages or out_type in ('tokens', 'layers'):
            return tokens
        return tokens.mean(dim=1) if out_type == 'average' else tokens[:, 0]

    channels = 5 if stages and stages[0] else 3
    assert_equal_with_gradients(Alone(backbone), theirs, torch.randn(batch, channels, *size))


@pytest.mark.usefixtures('double_precision')
@pytest.mark.parametrize(('name', 'stages', 'batch', 'built', 'size', 'training'), CASES)
def test_a_network_is_its_equations(name, stages, batch, built, size, training):
    torch.manual_seed(sum(size))
    backbone = build(name, built, stages, training)
    if stages == FOUR:  # larger weights amplify what is rounded
        for parameter in backbone.parameters():
            parameter.data.mul_(0.5)
    assert_is_its_equations(name, backbone, batch, size, stages, training)


@pytest.mark.usefixtures('double_precision')
@pytest.mark.parametrize('training', [False, True])
def test_last_class_token_looks_at_those_of_all_blocks(training):
    torch.manual_seed(0)
    backbone = build('ceit-small', (32, 48), training=training)
    neck = read('ceit-small').neck.to_dict() | dict(channels=12, num_heads=4, depth=len(backbone.stages[0].blocks))

    def theirs(x, weights):
        layers = published.ceit(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), [4], training)
        return published.layerwise_class_attention(layers, published.under(weights, 'parts.1'), heads=4)

    assert_equal_with_gradients(Alone(backbone, randomise(MODELS.build(neck))), theirs, torch.randn(2, 3, 32, 48))


@pytest.mark.usefixtures('double_precision')
@pytest.mark.parametrize(
    ('size', 'built', 'training'), [((28, 56), (28, 56), False), ((56, 28), (56, 28), True), ((100, 75), 224, False)]
)
def test_resolutions_and_their_fusion_are_their_equations(size, built, training):
    torch.manual_seed(sum(size))
    backbone = build('hrformer-small', built)
    neck = MODELS.build(dict(type='vt.ScaleFusion', in_channels=[4, 6, 8], inner_channels=[2, 3, 4], out_channels=5))

    def theirs(x, weights):
        maps, heads = x.permute(0, 2, 3, 1), [[1, 2], [1, 2, 2]]
        maps = published.hrformer(maps, published.under(weights, 'parts.0'), heads, training)
        return published.scale_fusion(maps, published.under(weights, 'parts.1'), training).permute(0, 3, 1, 2)

    assert_equal_with_gradients(Alone(backbone, randomise(neck)).train(training), theirs, torch.randn(2, 3, *size))


@pytest.mark.parametrize('name', [name for name, entry in SURVEY_MODELS.items() if 'reference' in entry])
def test_a_public_checkpoint_gives_the_references_logits(name):
    config, entry, options = read(name, whole=True), SURVEY_MODELS[name], {}
    if name in ('vit-base', 'cait-s24'):  # whose blocks are many and alike
        config.model.backbone.stages[0].depth = options['depth'] = 2
    assert measure_difference(config, entry['reference'], entry.get('image_size', 224), **options) < 1e-4


def public_swin(kind, size):
    arch = dict(embed_dims=6, depths=[2, 2, 2, 2], num_heads=[1, 2, 2, 4])
    arch |= dict(extra_norm_every_n_blocks=0) if kind is SwinTransformerV2 else {}
    options = dict(window_size=[8] * 4, img_size=256) if kind is SwinTransformerV2 else dict(img_size=224)
    return kind(arch=arch, pad_small_map=size == (256, 192), out_indices=(3,), drop_path_rate=0.0, **options)


TWINS = (16, 32, 64, 128), (1, 2, 4, 8)


def public_twins(size):
    return timm.create_model('twins_svt_small', embed_dims=TWINS[0], num_heads=TWINS[1], depths=(2, 2, 2, 2))


# Of public code with random weights: channels, heads, a function of the images' size that makes it, its output of an
# image, and the error. At the size of poses a side is shorter than a window, which MMPretrain's pads if asked; it has
# the offsets of the second Swin in float32.
PUBLIC = {
    'swin-tiny': ((6, 12, 24, 48), (1, 2, 2, 4), partial(public_swin, SwinTransformer), lambda m, x: m(x)[0], 1e-12),
    'swinv2-tiny': ((6, 12, 24, 48), (1, 2, 2, 4), partial(public_swin, SwinTransformerV2), lambda m, x: m(x)[0], 1e-5),
    'twins-svt-small': (*TWINS, public_twins, lambda m, x: m.forward_features(x).mean(dim=1), 1e-8),
}


@pytest.mark.usefixtures('double_precision')
@pytest.mark.parametrize(
    ('name', 'size', 'built'),
    [
        ('swin-tiny', (256, 192), 224),
        ('swinv2-tiny', (512, 256), (512, 256)),  # one of two windows covers a side of the last grid
        ('swinv2-tiny', (256, 192), (256, 192)),
        ('swinv2-tiny', (256, 192), 256),
        ('twins-svt-small', (256, 192), (256, 192)),
        ('twins-svt-small', (233, 187), 224),
    ],
)
def test_maps_and_gradients_are_those_of_public_code(name, size, built, tmp_path):
    torch.manual_seed(0)
    channels, heads, make_theirs, read_out, tolerance = PUBLIC[name]
    theirs = randomise(make_theirs(size).double())
    theirs.eval()  # MMPretrain's gives None
    torch.save({f'backbone.{key}': value for key, value in theirs.state_dict().items()}, tmp_path / 'theirs.pth')
    init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'theirs.pth'), prefix='backbone.')
    config = read(name).backbone.to_dict()
    widths = (dict(channels=own, num_heads=number, depth=2) for own, number in zip(channels, heads))
    stages = [stage | width for stage, width in zip(config['stages'], widths)]
    out_type = 'average' if name.startswith('twins') else 'map'
    ours = MODELS.build(config | dict(stages=stages, image_size=built, out_type=out_type, init_cfg=init_cfg)).eval()
    ours.init_weights()
    image = torch.randn(1, 3, *size).requires_grad_()
    found, expected = ours(image)[0], read_out(theirs, image)
    direction = torch.randn_like(found)
    gradients = [torch.autograd.grad(out, image, direction)[0] for out in (found, expected)]
    for own, other in ((found, expected), gradients):
        torch.testing.assert_close(own, other, rtol=0, atol=tolerance * other.abs().max().item())


def make(name, **options):
    """A model in evaluation mode, and a function that draws so many samples for it."""
    torch.manual_seed(1)
    if name in OF_VT:
        make_model, size = OF_VT[name]
        model, sizes = make_model(), size if isinstance(size, list) else [size]
        if hasattr(model, 'init_weights'):
            model.init_weights()
    elif name in MVITS:
        model, sizes = small_mvit(**MVITS[name], **options), [(3, *[4] * ('num_frames' not in MVITS[name]), 32, 32)]
    else:
        model, side = build(name, **options), SIZES.get(name, 64)
        sizes = [(3, side, side)]

    def draw(number):
        return [torch.randn(number, *size) for size in sizes]

    return model.eval(), draw


def run(model, samples):
    """The outputs, flat; a neck takes the list."""
    outs = model(samples if isinstance(model, (VTFPN, TokenEncoder)) else samples[0])
    outs = outs if isinstance(outs, tuple) else (outs,)
    return [each for out in outs for each in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize('name', MODELS_OF_ALL)
def test_gradients_reach_every_parameter_and_samples_are_independent(name):
    # A class token does not see all of the last block.
    model, draw = make(name, **{} if name in OF_VT else dict(out_type='tokens'))
    if name in MVITS:
        randomise(model, 0.02)
    samples = [each.double() for each in draw(2)]
    together, apart = run(model.double(), samples), run(model, [each[1:] for each in samples])
    torch.testing.assert_close([out[1:] for out in together], apart)
    sum(out.square().sum() for out in together).backward()
    assert_all_learn(model, CANCELLED)


@pytest.mark.parametrize('name', MODELS_OF_ALL)
def test_a_copy_is_the_same(name):
    """A pickle with synchronised norms, and another model with its weights."""
    model, draw = make(name)
    other, _ = make(name)
    randomise(model, 0.02)
    with torch.no_grad():
        expected = run(model, samples := draw(1))
        other.load_state_dict(model.state_dict())
        assert all(map(torch.equal, run(other, samples), expected))
        again = revert_sync_batchnorm(pickle.loads(pickle.dumps(convert_sync_batchnorm(model))))
        torch.testing.assert_close(run(again.eval(), samples), expected)


@pytest.mark.parametrize('name', OWN)
def test_images_of_any_size_and_maps_of_every_stage(name):
    model = build(name, out_type='map', norm_outputs=True)
    model.out_indices = range(len(model.stages))
    size = SIZES.get(name, 64)
    height, width = 2 * size, size + 32
    with torch.no_grad():
        outs = model(torch.randn(1, 3, height, width))
    for out, stage in zip(outs, model.stages, strict=True):
        assert out.isfinite().all()
        if hasattr(stage.embed, 'grid'):  # as many tokens of any map
            assert out.shape[2:] == stage.size
            continue
        stride = size // stage.size[0]
        assert abs(out.shape[2] - height / stride) <= 1
        assert abs(out.shape[3] - width / stride) <= 1


@pytest.mark.parametrize('name', STAGED)
def test_frozen_stages_stay_as_they_are(name):
    model = make(name, frozen_stages=0)[0].train()
    frozen = ('stages.0.', 'stem.', 'transitions.0.')
    for key, parameter in model.named_parameters():
        assert parameter.requires_grad is not key.startswith(frozen), key
    for key, module in model.named_modules():
        assert module.training is not f'{key}.'.startswith(frozen), key


@pytest.mark.parametrize('name', STAGED)
def test_every_layer_has_a_depth(name):
    """From 0 to one less than the number of layers; blocks come one after the other, each with what is before it."""
    model, _ = make(name)
    found = {key: model.get_layer_depth(f'backbone.{key}', 'backbone.') for key, _ in model.named_parameters()}
    (num_layers,) = {number for _, number in found.values()}
    depths = {key: depth for key, (depth, _) in found.items()}
    assert {*depths.values(), num_layers - 1} == set(range(num_layers))  # the last is the head's
    assert model.get_layer_depth('head.fc.weight', 'backbone.') == (num_layers - 1, num_layers)
    if name == 'hrformer-small':  # whose branches are beside each other
        return
    lengths = {f'stages.{stage}': len(each.blocks) for stage, each in enumerate(model.stages)}
    blocks = [(stage, block) for stage, length in lengths.items() for block in range(length)]
    for number, (stage, block) in enumerate(blocks, start=1):
        assert {depth for key, depth in depths.items() if key.startswith(f'{stage}.blocks.{block}.')} == {number}
        embed = {depth for key, depth in depths.items() if key.startswith(f'{stage}.embed.')} if not block else set()
        assert embed <= {0 if number == 1 else number}
    assert {depth for key, depth in depths.items() if key.startswith(f'{stage}.norm.')} <= {num_layers - 1}


MIXED = ('rest-small', 'cait-s24', 'deepvit-small', 'vit-performer')  # whose maps don't sum to one


@pytest.mark.parametrize('name', STAGED)
def test_every_attention_is_recorded(name):
    model, draw = make(name)
    with torch.no_grad(), record_attention(model) as records:
        run(model, draw(1))
    attentions = {key for key, part in model.named_modules() if key.endswith(('attention.part', 'embed.attend'))}
    branches = {key for key in attentions if hasattr(model.get_submodule(key), 'branches')}
    attentions |= {f'{key}.branches.{index}' for key in branches for index in (0, 1)}
    assert attentions - branches <= records.keys()
    for key in attentions - branches:
        maps = records[key].attention
        assert maps.dim() == 4
        if name not in MIXED:
            torch.testing.assert_close(maps.sum(dim=-1), torch.ones(maps.shape[:-1]))


@pytest.mark.parametrize('name', [pytest.param(each, marks=[SLOW] * (each != 'swin-tiny')) for each in COMPILED])
def test_compiled_in_one_graph_and_exported(name):
    model, draw = make(name)
    samples = draw(2)
    torch.compiler.reset()
    with torch.no_grad():
        expected = run(model, samples)
        torch.testing.assert_close(run(torch.compile(model, fullgraph=True, backend='eager'), samples), expected)
        torch.testing.assert_close(run(torch.export.export(model, (*samples,)).module(), samples), expected)


def with_and_without(name):
    """A backbone whose blocks are recomputed, and its twin."""
    if name in OF_VT:
        kind = partial(VTResNet, positions=('layer2', 'layer4')) if name.startswith('modules') else VTResNet
        recomputed, plain = kind(18, **SMALL, with_cp=True), kind(18, **SMALL)
        plain.load_state_dict(recomputed.state_dict())
        return recomputed, plain, make(name)[1]
    recomputed, draw = make(name, with_cp=True)
    plain = copy.deepcopy(recomputed)
    plain.with_cp = False
    return recomputed, plain, draw


@pytest.mark.parametrize('name', ['VT-ResNet', 'modules at two stages', *STAGED])
def test_recomputed_blocks_give_the_same_gradients_and_statistics(name):
    *models, draw = with_and_without(name)
    found, samples = [], draw(2)
    for each in models:
        torch.manual_seed(1)
        loss = sum(out.square().sum() for out in run(each.train(), samples))
        found.append(torch.autograd.grad(loss, [*each.parameters()], allow_unused=True, materialize_grads=True))
    torch.testing.assert_close(*found)
    for own, other in zip(*(model.buffers() for model in models), strict=True):
        assert torch.equal(own, other)


# Of a config the parameters in M, with the head, and the FLOPs in G: of the public definition, or of the paper.
VIDEO = {
    'mvit-base-16x4_k400': (36.61, 70.60),
    'mvit-base-32x3_k400': (36.61, 169.96),
    'mvit-base-64x3_k400': (36.61, 455.06),
    'mvit-base24-32x3_k600': (53.12, 235.8),
    'mvitv2-small-16x4_k400': (34.54, 64.22),
    'vit-base-16x4_k400': (87.2, 179.6),
    'mvit-base16_in1k': (36.98, 7.81),
    'mvit-base24_in1k': (53.52, 10.94),
    'mvit-base24-wide_in1k-320px': (72.96, 32.72),
}


@cache
def build_and_count(name, size, frames=None):
    """A config, its model and what it costs; nothing is computed where that is possible."""
    cfg = Config.fromfile(find_config(name))
    with torch.device('cpu' if name.startswith('tnt') else 'meta'):
        model = MODELS.build(cfg.model).eval()
        inputs = torch.zeros(1, 3, *([frames] if frames else []), size, size)
        return cfg, model, count_complexity(model, inputs, mode='tensor')


@pytest.mark.parametrize('name', SURVEY_MODELS)
def test_a_survey_model_is_the_published_one(name):
    entry = SURVEY_MODELS[name]
    _, model, cost = build_and_count(f'{name}_16xb64-300e_in1k', entry.get('image_size', 224))
    parameters, flops = entry.get('code', entry['published'])[:2]
    assert cost.parameters / 1e6 == pytest.approx(parameters, rel=0.01)
    assert cost.flops / 1e9 == pytest.approx(flops, rel=0.03)
    if len(EQUATIONS.get(name, ())) < 5:
        return
    *_, heads, rate = EQUATIONS[name]
    assert tuple(heads_of(model.backbone)) == heads
    depths = [len(stage.blocks) for stage in model.backbone.stages]
    rates = [rate * index / (sum(depths) - 1) for index in range(sum(depths))]
    if name == 'shuffle-tiny':  # a rate for each stage
        rates = [rate * stage / 3 for stage, depth in enumerate(depths) for _ in range(depth)]
    dropped = {'attention': rates, 'feed_forward': [0] * len(rates) if name == 'localvit-small' else rates}
    for part, expected in dropped.items():
        found = [getattr(block, part).drop_path for stage in model.backbone.stages for block in stage.blocks]
        assert [each.drop_prob for each in found] == pytest.approx(expected)
    betweens = [part for key, part in model.named_modules() if '.between.' in key and isinstance(part, DropPath)]
    assert not any(part.drop_prob for part in betweens)


@pytest.mark.parametrize('name', VIDEO)
def test_a_multiscale_model_is_the_published_one(name):
    frames = Config.fromfile(find_config(name)).model.backbone.get('num_frames')
    cfg, model, cost = build_and_count(name, 320 if '320px' in name else 224, frames)
    parameters, flops = VIDEO[name]
    assert cost.parameters / 1e6 == pytest.approx(parameters, rel=0.01)
    assert cost.flops / 1e9 == pytest.approx(flops, rel=0.01)
    assert cfg.model.head.in_channels == model.backbone.stages[-1].out_channels
    assert cfg.auto_scale_lr.base_batch_size == (4096 if 'in1k' in name else 512)
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-3 if 'in1k' in name else 1.6e-3)


@pytest.mark.parametrize(('name', 'flops'), [('table10_two-scales_k400', 111.1), ('table10_pooled-keys_k400', 148.4)])
def test_cheaper_vits_save_what_table_10_says(name, flops):
    usual, cheaper = (build_and_count(each, 224, 16)[2].flops for each in ('vit-base-16x4_k400', name))
    assert (cheaper - usual) / 1e9 == pytest.approx(flops - 179.6, rel=0.02)
