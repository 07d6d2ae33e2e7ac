"""Public files of weights: each library's own models and the authors' names, loaded whole, with their logits."""

import copy
import re
from functools import cache, partial

import pytest
import timm
import torch
import torchvision
from checkpoints.authors_files import draw, draw_image, read_files
from checkpoints.small_models import load_part
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.models.utils import MultiheadAttention
from mmpretrain.registry import MODELS
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from vt.apis import find_config, get_model
from vt.checkpoints.weights import load_weights
from vt.errors import UserError

SUFFIX = '_16xb64-300e_in1k'
FINAL_NORM = dict(qkv_bias=True, norm_after_stage=[False, False, False, True])
SMALL = dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
PVT_V2 = dict(hidden_sizes=[64, 128, 320, 512], depths=[3, 4, 6, 3], mlp_ratios=[8, 8, 4, 4])
MIXED = dict(t2t_cfg=dict(token_dims=64), layer_cfgs=dict(num_heads=6, feedforward_channels=1152))


def mmpretrain(width, head, **backbone):
    init_default_scope('mmpretrain')
    neck = dict(type='GlobalAveragePooling') if head == 'LinearClsHead' and backbone['type'] != 'TNT' else None
    head = dict(type=head, num_classes=1000, in_channels=width)
    return MODELS.build(dict(type='ImageClassifier', backbone=backbone, neck=neck, head=head))


def hugging_face(family, kind='ForImageClassification', **options):
    import transformers

    if family in ('ViT', 'DeiT'):  # the library's default is 1e-12, these models' own is 1e-6
        options.setdefault('layer_norm_eps', 1e-6)
    return getattr(transformers, family + kind)(getattr(transformers, f'{family}Config')(num_labels=1000, **options))


LIN, VIT = 'LinearClsHead', 'VisionTransformerClsHead'
# Our config, the library, and how it builds its model.
PAIRS = {
    ('vit-base', 'timm'): lambda: timm.create_model('vit_base_patch16_224'),
    ('vit-base', 'torchvision'): lambda: torchvision.models.vit_b_16(),
    ('vit-base', 'MMPretrain'): lambda: mmpretrain(768, VIT, type='VisionTransformer', arch='b'),
    ('vit-base', 'Hugging Face'): lambda: hugging_face('ViT'),
    ('deit-small', 'timm'): lambda: timm.create_model('deit_small_patch16_224'),
    ('deit-small', 'MMPretrain'): lambda: mmpretrain(384, VIT, type='VisionTransformer', arch='deit-s'),
    ('deit-small', 'Hugging Face'): lambda: hugging_face('ViT', **SMALL),
    ('deit-small-distilled', 'timm'): lambda: timm.create_model('deit_small_distilled_patch16_224'),
    ('deit-small-distilled', 'MMPretrain'): lambda: mmpretrain(
        384, 'DeiTClsHead', type='DistilledVisionTransformer', arch='deit-small'
    ),
    ('deit-small-distilled', 'Hugging Face'): lambda: hugging_face(
        'DeiT', 'ForImageClassificationWithTeacher', **SMALL
    ),
    ('cait-s24', 'timm'): lambda: timm.create_model('cait_s24_224'),
    ('swin-tiny', 'timm'): lambda: timm.create_model('swin_tiny_patch4_window7_224'),
    ('swin-tiny', 'torchvision'): lambda: torchvision.models.swin_t(),
    ('swin-tiny', 'MMPretrain'): lambda: mmpretrain(768, LIN, type='SwinTransformer', arch='tiny'),
    ('swin-tiny', 'Hugging Face'): lambda: hugging_face('Swin'),
    ('swinv2-tiny', 'timm'): lambda: timm.create_model('swinv2_tiny_window8_256'),
    ('swinv2-tiny', 'torchvision'): lambda: torchvision.models.swin_v2_t(),
    ('swinv2-tiny', 'MMPretrain'): lambda: mmpretrain(
        768, LIN, type='SwinTransformerV2', arch='tiny', img_size=256, window_size=[8] * 4
    ),
    ('swinv2-tiny', 'Hugging Face'): lambda: hugging_face('Swinv2', image_size=256, window_size=8),
    ('pvt-small', 'Hugging Face'): lambda: hugging_face('Pvt', depths=[3, 4, 6, 3]),
    ('pvtv2-b2', 'timm'): lambda: timm.create_model('pvt_v2_b2'),
    ('pvtv2-b2', 'Hugging Face'): lambda: hugging_face('PvtV2', **PVT_V2),
    ('pvtv2-b2-li', 'timm'): lambda: timm.create_model('pvt_v2_b2_li'),
    ('pvtv2-b2-li', 'Hugging Face'): lambda: hugging_face('PvtV2', linear_attention=True, **PVT_V2),
    ('twins-svt-small', 'timm'): lambda: timm.create_model('twins_svt_small'),
    ('twins-svt-small', 'MMPretrain'): lambda: mmpretrain(512, LIN, type='SVT', arch='small', **FINAL_NORM),
    ('twins-pcpvt-small', 'timm'): lambda: timm.create_model('twins_pcpvt_small'),
    ('twins-pcpvt-small', 'MMPretrain'): lambda: mmpretrain(512, LIN, type='PCPVT', arch='small', **FINAL_NORM),
    ('mvitv2-tiny', 'timm'): lambda: timm.create_model('mvitv2_tiny'),
    ('mvitv2-tiny', 'MMPretrain'): lambda: mmpretrain(768, LIN, type='MViT', arch='tiny'),
    ('tnt-small', 'timm'): lambda: timm.create_model('tnt_s_legacy_patch16_224'),
    ('tnt-small', 'MMPretrain'): lambda: mmpretrain(384, LIN, type='TNT', arch='s'),
    ('resnet50_8xb32-90e_in1k', 'torchvision'): lambda: torchvision.models.resnet50(),
    ('resnet50_8xb32-90e_in1k', 'timm'): lambda: timm.create_model('resnet50'),
    ('resnet50_8xb32-90e_in1k', 'MMPretrain'): lambda: mmpretrain(2048, LIN, type='ResNet', depth=50),
    ('resnet50_8xb32-90e_in1k', 'Hugging Face'): lambda: hugging_face('ResNet'),
}
QUICK = (('deit-small', 'timm'), ('swin-tiny', 'MMPretrain'), ('pvt-small', 'Hugging Face'))


def slow_unless(quick, values):
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def randomise(model):
    """Away from zeros and ones, which hide what they multiply."""
    for parameter in model.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.9, 1.1)
    return model.eval()


def average(logits):
    """Of the class token and of the distilled one."""
    logits = getattr(logits, 'logits', logits)
    return sum(logits) / len(logits) if isinstance(logits, (tuple, list)) else logits


@pytest.mark.parametrize('pair', slow_unless(QUICK, PAIRS), ids=' from '.join)
def test_a_librarys_own_file_gives_its_logits(pair, tmp_path):
    torch.manual_seed(0)
    name, library = pair
    theirs = randomise(PAIRS[pair]())
    path = tmp_path / 'model.safetensors' if library == 'Hugging Face' else tmp_path / 'model.pth'
    if library == 'Hugging Face':
        theirs.save_pretrained(tmp_path)
    else:
        torch.save(theirs.state_dict(), path)
    ours = get_model(name if 'in1k' in name else name + SUFFIX, path)
    images = torch.randn(1, 3, *[256 if 'v2-tiny' in name and 'swin' in name else 224] * 2)
    with torch.no_grad():
        expected = theirs.head(theirs.extract_feat(images)) if library == 'MMPretrain' else theirs(images)
        found = average(ours.head(ours.extract_feat(images)))
    assert (found - average(expected)).abs().max() < 1e-4 * average(expected).abs().max()


def test_mmpretrains_t2t_vit_takes_its_authors_scale(monkeypatch):
    """MMPretrain divides queries by the factor that it should multiply them by: corrected, its logits are ours."""
    torch.manual_seed(0)
    theirs = randomise(mmpretrain(384, VIT, type='T2T_ViT', **MIXED)).double()
    ours = get_model('t2t-vit-t-14' + SUFFIX).double()
    lines = []
    monkeypatch.setattr('vt.checkpoints.weights.print_log', lambda line, **options: lines.append(line))
    load_weights(ours, theirs.state_dict())
    assert 'format: MMPretrain T2T-ViT (its logits differ: it multiplies queries by sqrt(d)' in lines[0]
    images = torch.randn(1, 3, 224, 224, dtype=torch.float64)
    for part in theirs.modules():
        if isinstance(part, MultiheadAttention):
            scale = (part.input_dims // part.num_heads) ** -0.5
            part.scaled_dot_product_attention = partial(scaled_dot_product_attention, scale=scale)
    with torch.no_grad():
        expected, found = theirs.head(theirs.extract_feat(images)), ours.head(ours.extract_feat(images))
    assert (found - expected).abs().max() < 1e-12 * expected.abs().max()


FILES = {f'{name}, {source}': (name, *rest) for name, source, *rest in read_files()}
QUICK_FILES = [key for key in FILES if key.startswith(('swin-tiny', 'cswin', 'elsa', 'msg', 'ceit', 'ps-vit'))]


@pytest.mark.parametrize('key', slow_unless(QUICK_FILES, FILES))
def test_the_authors_file_gives_their_logits(key, tmp_path):
    name, largest, first, shapes = FILES[key]
    state = {each: draw(each, shape) for each, shape in shapes.items()}
    if name == 't2t-vit-t-14':
        del state['pos_embed']  # fixed: the model's own
    torch.save(dict(model=state), tmp_path / 'model.pth')
    cfg = Config.fromfile(find_config(name if '_' in name else name + SUFFIX))
    for stage in cfg.model.backbone.get('stages', []):
        if stage.get('embed', {}).get('type') == 'vt.ReductionCell' and stage.embed.get('transform', True):
            stage.embed.epsilon = 1e-8
    model = get_model(cfg, tmp_path / 'model.pth')
    images = draw_image(256 if name == 'swinv2-tiny' else 224, 16 if 'k400' in name else None)
    with torch.no_grad():
        found = average(model.head(model.extract_feat(images)))[0, : len(first)]
    tolerance = 3e-4 if name == 't2t-vit-t-14' else 1e-4  # 1e-12 in float64
    assert (found - torch.tensor(first)).abs().max() < tolerance * largest


def swin():
    """A small one of ours, of seven classes."""
    return copy.deepcopy(build_swin())


@cache
def build_swin():
    init_default_scope('mmpretrain')
    cfg = Config.fromfile(find_config('swin-tiny' + SUFFIX)).model.to_dict()
    widths = [dict(channels=12 * 2**index, depth=2, num_heads=2) for index in range(4)]
    stages = [stage | width for stage, width in zip(cfg['backbone']['stages'], widths)]
    backbone = cfg['backbone'] | dict(stages=stages)
    head = dict(type='LinearClsHead', num_classes=7, in_channels=96)
    torch.manual_seed(0)
    return MODELS.build(dict(type='ImageClassifier', backbone=backbone, neck=cfg.get('neck'), head=head))


def microsoft(stages=4, width=12, classes=7, depth=2):
    """A small file of Microsoft's Swin."""
    wanted = next(shapes for name, _, _, _, shapes in read_files() if name == 'swin-tiny')
    state = {}
    for name, shape in wanted.items():
        layer = re.match(r'layers\.(\d)\.(blocks\.(\d)|downsample)', name)
        if layer and (int(layer[1]) >= stages or int(layer[3] or 0) >= depth):
            continue
        sides = tuple(side * width // 96 if side % 96 == 0 else classes if side == 1000 else side for side in shape)
        if 'bias_table' in name:
            sides = (shape[0], 2)
        state[name] = draw(name, sides)
    return state


def without(state, *parts):
    return {name: tensor for name, tensor in state.items() if not any(part in name for part in parts)}


def apart(state):
    """Queries, keys and values of every block apart, besides what is together."""
    thirds = {}
    for name, tensor in state.items():
        if '.qkv.' in name:
            thirds |= {name.replace('qkv', part): third for part, third in zip('qkv', tensor.chunk(3))}
    return thirds


def renamed(state, pattern, replacement):
    return {re.sub(pattern, replacement, name): tensor for name, tensor in state.items()}


WHOLE = microsoft()
GOOD = {
    'plain': WHOLE,
    'module.': renamed(WHOLE, '^', 'module.'),
    'module.backbone., with a head': renamed(renamed(WHOLE, '^(?!head)', 'backbone.'), '^', 'module.'),
    '_orig_mod.': renamed(WHOLE, '^', '_orig_mod.'),
    'model.': dict(state_dict=renamed(WHOLE, '^', 'model.')),
    'net.': dict(state_dict=renamed(WHOLE, '^', 'net.')),
    'model': dict(model=WHOLE, optimizer=dict(state={})),
    'model_state': dict(model_state=WHOLE, epoch=1, cfg='a: 1'),
    'averages': dict(state_dict_ema=WHOLE, state_dict={name: 0 * tensor for name, tensor in WHOLE.items()}),
    'averages of DeiT, which its authors do not score': dict(
        model=WHOLE, model_ema={name: 0 * tensor for name, tensor in WHOLE.items()}
    ),
    "averages of torchvision's trainer": dict(
        model={name: 0 * tensor for name, tensor in WHOLE.items()},
        model_ema={f'module.{name}': tensor for name, tensor in WHOLE.items()} | dict(n_averaged=torch.tensor(3)),
    ),
    'empty averages': dict(state_dict_ema={}, model_ema=None, state_dict=WHOLE),
    'q, k and v apart': {name: x for name, x in WHOLE.items() if '.qkv.' not in name} | apart(WHOLE),
}


@pytest.mark.parametrize('kind', GOOD)
def test_containers_and_prefixes_are_found(kind):
    model, expected = swin(), swin()
    load_weights(expected, dict(WHOLE))
    load_weights(model, GOOD[kind])
    wanted = expected.state_dict()
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in model.state_dict().items())
    loaded = load_part(swin(), GOOD[kind])
    assert len(loaded) == len(wanted)


def test_coordinates_that_count_from_another_window_are_refused():
    """Of a Swin v2 that was fine-tuned at a larger window than it was trained with."""
    backbone = get_model('swinv2-tiny_16xb64-300e_in1k').backbone
    for window, refused in ((0, False), (6, True)):
        theirs = timm.create_model('swinv2_tiny_window8_256', pretrained_window_sizes=(window,) * 4)
        tables = {name: table for name, table in theirs.named_buffers() if name.endswith('coords_table')}
        state = theirs.state_dict() | tables
        assert len(tables) == 12
        if refused:
            with pytest.raises(UserError, match=r'also has stages\.0\.blocks\.0\.attention\.part\.bias\.coordinates'):
                load_part(backbone, state)
        else:
            assert len(load_part(backbone, state)) == len(backbone.state_dict())


def test_a_second_network_beside_it_is_left_out():
    """Momentum encoders are in the file, too."""
    state = renamed(without(WHOLE, 'head'), '^', 'module.encoder_q.')
    state |= renamed(without(WHOLE, 'head'), '^', 'module.encoder_k.') | dict(queue=torch.ones(2))
    backbone = swin().backbone
    assert len(load_part(backbone, state)) == len(backbone.state_dict())


BAD = {
    'the last stage missing': (microsoft(stages=3), 'lacks backbone.stages.3'),
    'a block missing': (without(WHOLE, 'layers.2.blocks.1.'), 'lacks backbone.stages.2.blocks.1'),
    'a block too many': (microsoft(depth=3), 'also has backbone.stages.2.blocks.2'),
    'the final norm missing': (without(WHOLE, 'norm.weight'), 'lacks backbone.stages'),
    'a bias missing': (without(WHOLE, 'layers.1.blocks.0.mlp.fc1.bias'), 'lacks backbone.stages.1.blocks.0'),
    'all tables missing': (without(WHOLE, 'bias_table'), 'lacks backbone.stages.0.blocks.0.attention.part.bias.table'),
    'a table of another window': (
        WHOLE | {'layers.0.blocks.0.attn.relative_position_bias_table': torch.ones(12, 2)},
        'the grid of its 12 positions is unknown',
    ),
    'another width': (microsoft(width=24), 'the model needs'),
    'other classes': (microsoft(classes=5), r'head.fc.weight is \(5, 96\), the model needs \(7, 96\)'),
    'no head': (without(WHOLE, 'head'), 'lacks head.fc.bias and 1 more'),
    'a head too many': (WHOLE | {'head_dist.weight': torch.ones(7, 96)}, 'also has head.fc_distillation.weight'),
    'half a prefix': (
        without(WHOLE, 'layers.1.') | renamed({k: v for k, v in WHOLE.items() if 'layers.1.' in k}, '^', 'net.'),
        'lacks backbone.stages.1',
    ),
    'queries alone': (
        without(WHOLE, '.qkv.') | {name: x for name, x in apart(WHOLE).items() if '.attn.q.' in name},
        'lacks backbone.stages.0.blocks.0.attention.part.qkv',
    ),
    'q, k and v apart and together': (WHOLE | apart(WHOLE), 'also has backbone.stages.0.blocks.0.attention.part.key'),
    'a patch embedding of another size': (
        WHOLE | {'patch_embed.proj.weight': torch.ones(12, 3, 2, 2)},
        r'is \(12, 3, 2, 2\), the model needs \(12, 3, 4, 4\)',
    ),
    'an absolute position': (WHOLE | dict(absolute_pos_embed=torch.ones(1, 256, 12)), 'also has backbone.absolute'),
    'one tensor by two names': (
        WHOLE | {'norm3.weight': torch.zeros(96)},
        'and another tensor are both backbone.stages.3.norm.weight of the model, but differ',
    ),
    'a ViT': (lambda: timm.create_model('deit_tiny_patch16_224', depth=2).state_dict(), '(lacks|needs)'),
    'a ResNet': (lambda: torchvision.models.resnet18().state_dict(), '(lacks|needs)'),
    'Swin v2': (lambda: timm.create_model('swinv2_tiny_window8_256').state_dict(), '(lacks|needs)'),
    'Twins': (lambda: timm.create_model('twins_svt_small').state_dict(), '(lacks|needs)'),
    'nothing': ({}, 'has no weights by name'),
}


@pytest.mark.parametrize('kind', BAD)
def test_what_does_not_fit_is_named_and_nothing_is_loaded(kind):
    state, words = BAD[kind]
    state = state() if callable(state) else dict(state)
    model = swin()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(UserError, match=words) as raised:
        load_weights(model, state)
    assert '\n' not in str(raised.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


DEEP_VT = dict(type='vt.VTResNet', depth=50, deep_stem=True, avg_down=True)
RESNETS = {
    ('timm resnet18d', 'ResNetV1d-18'): dict(type='ResNetV1d', depth=18),
    ('timm resnet50d', 'ResNetV1d'): dict(type='ResNetV1d', depth=50),
    ('timm resnet50c', 'ResNetV1c'): dict(type='ResNetV1c', depth=50),
    ('timm resnet50s', 'ResNetV1c'): dict(type='ResNetV1c', depth=50, stem_channels=128),
    ('timm resnet50d', 'MMSegmentation'): dict(type='mmseg.ResNetV1d', depth=50),
    ('timm resnet50c', 'MMSegmentation'): dict(type='mmseg.ResNetV1c', depth=50),
    ('torchvision resnet50', 'MMSegmentation'): dict(type='mmseg.ResNet', depth=50),
    ('timm resnext50_32x4d', 'ResNeXt'): dict(type='ResNeXt', depth=50),
    ('torchvision resnext50_32x4d', 'ResNeXt'): dict(type='ResNeXt', depth=50),
    ('timm resnet50d', 'VT-ResNet'): DEEP_VT,
    ('timm resnet50c', 'VT-ResNet'): DEEP_VT | dict(avg_down=False),
    ('torchvision resnet50', 'VT-ResNet'): dict(type='vt.VTResNet', depth=50),
}


def build_resnet(source):
    library, name = source.split()
    return randomise(timm.create_model(name) if library == 'timm' else torchvision.models.get_model(name))


def maps_of(resnet, images):
    maps, act = [], resnet.relu if hasattr(resnet, 'relu') else resnet.act1
    x = resnet.maxpool(act(resnet.bn1(resnet.conv1(images))))
    for stage in (resnet.layer1, resnet.layer2, resnet.layer3, resnet.layer4):
        maps.append(x := stage(x))
    return maps


QUICK_RESNETS = (('timm resnet18d', 'ResNetV1d-18'), ('timm resnet50c', 'ResNetV1c'), ('timm resnet50d', 'VT-ResNet'))


@pytest.mark.parametrize('pair', slow_unless(QUICK_RESNETS, RESNETS), ids=' into '.join)
def test_resnets_give_their_maps(pair):
    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    theirs, options = build_resnet(pair[0]).double(), RESNETS[pair]
    maps = dict(out_type='featmap', out_indices=(0, 1, 2)) if 'vt.' in options['type'] else dict(out_indices=range(4))
    ours = MODELS.build(options | maps).double()
    ours.eval()
    load_part(ours, theirs.state_dict())
    images = torch.randn(1, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        found, expected = ours(images), maps_of(theirs, images)
    for one, other in zip(found, expected):
        assert (one - other).abs().max() < 1e-12 * other.abs().max()


BAD_RESNETS = (
    ('timm resnet50d', dict(type='vt.VTResNet', depth=50), r'layer1\.0\.downsample\.1\.weight is'),
    ('timm resnet50d', DEEP_VT | dict(avg_down=False), r'layer2\.0\.downsample\.1\.weight is'),
    ('timm resnet50', dict(type='ResNetV1d', depth=50), r'layer2\.0\.downsample\.1\.weight is'),
    ('timm resnet50t', dict(type='ResNetV1d', depth=50), r'stem\.0\.conv\.weight is \(24, 3, 3, 3\)'),
    ('timm resnext50_32x4d', dict(type='vt.VTResNet', depth=50), r'layer1\.0\.conv1\.weight is'),
    ('timm seresnext50_32x4d', dict(type='ResNeXt', depth=50), r'also has layer1\.0\.se\.fc1\.bias'),
    ('torchvision wide_resnet50_2', dict(type='ResNeXt', depth=50), r'layer1\.0\.conv2\.weight is'),
)


@pytest.mark.parametrize(
    ('source', 'options', 'words'),
    [BAD_RESNETS[0], *(pytest.param(*row, marks=pytest.mark.slow) for row in BAD_RESNETS[1:])],
)
def test_resnets_of_another_form_are_refused(source, options, words):
    init_default_scope('mmpretrain')
    with pytest.raises(UserError, match=words) as raised:
        load_part(MODELS.build(options), build_resnet(source).state_dict())
    assert '\n' not in str(raised.value)
