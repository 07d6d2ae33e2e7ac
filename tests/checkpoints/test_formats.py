"""Public files of weights: each library's own models and the authors' names, loaded whole, with their logits.

``authors_files.txt`` has a heading for each model of authors: ours, the repository and its commit, the largest logit
and the first ones, of one image; below it the names, ``{0-3}`` and ``{a,b}`` for each of several, and their shapes. The
weights are drawn here, each from its name, as they were when the authors' code was run (float32, CPU, PyTorch 2.14).
"""

import copy
import itertools
import math
import re
import zlib
from functools import cache, partial
from pathlib import Path

import pytest
import timm
import torch
import torchvision
from checkpoints.small_models import load_part
from hypothesis import given, settings
from hypothesis import strategies as st
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
SMALL = dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
PVT_V2 = dict(hidden_sizes=[64, 128, 320, 512], depths=[3, 4, 6, 3], mlp_ratios=[8, 8, 4, 4])
MIXED = dict(t2t_cfg=dict(token_dims=64), layer_cfgs=dict(num_heads=6, feedforward_channels=1152))
TWINS = dict(arch='small', qkv_bias=True, norm_after_stage=[False, False, False, True])
SWIN_V2 = dict(arch='tiny', img_size=256, window_size=[8] * 4)
LIN, VIT = 'LinearClsHead', 'VisionTransformerClsHead'
# Our config, the library, and its model: a name, or what it is built from.
PUBLIC = (
    ('vit-base', 'timm', 'vit_base_patch16_224'),
    ('vit-base', 'torchvision', 'vit_b_16'),
    ('vit-base', 'MMPretrain', 768, VIT, 'VisionTransformer', dict(arch='b')),
    ('vit-base', 'Hugging Face', 'ViT', dict(layer_norm_eps=1e-6)),  # these models' own, the library's is 1e-12
    ('deit-small', 'timm', 'deit_small_patch16_224'),
    ('deit-small', 'MMPretrain', 384, VIT, 'VisionTransformer', dict(arch='deit-s')),
    ('deit-small', 'Hugging Face', 'ViT', SMALL | dict(layer_norm_eps=1e-6)),
    ('deit-small-distilled', 'timm', 'deit_small_distilled_patch16_224'),
    ('deit-small-distilled', 'MMPretrain', 384, 'DeiTClsHead', 'DistilledVisionTransformer', dict(arch='deit-small')),
    ('deit-small-distilled', 'Hugging Face', 'DeiT', SMALL | dict(layer_norm_eps=1e-6), 'WithTeacher'),
    ('cait-s24', 'timm', 'cait_s24_224'),
    ('swin-tiny', 'timm', 'swin_tiny_patch4_window7_224'),
    ('swin-tiny', 'torchvision', 'swin_t'),
    ('swin-tiny', 'MMPretrain', 768, LIN, 'SwinTransformer', dict(arch='tiny')),
    ('swin-tiny', 'Hugging Face', 'Swin', {}),
    ('swinv2-tiny', 'timm', 'swinv2_tiny_window8_256'),
    ('swinv2-tiny', 'torchvision', 'swin_v2_t'),
    ('swinv2-tiny', 'MMPretrain', 768, LIN, 'SwinTransformerV2', SWIN_V2),
    ('swinv2-tiny', 'Hugging Face', 'Swinv2', dict(image_size=256, window_size=8)),
    ('pvt-small', 'Hugging Face', 'Pvt', dict(depths=[3, 4, 6, 3])),
    ('pvtv2-b2', 'timm', 'pvt_v2_b2'),
    ('pvtv2-b2', 'Hugging Face', 'PvtV2', PVT_V2),
    ('pvtv2-b2-li', 'timm', 'pvt_v2_b2_li'),
    ('pvtv2-b2-li', 'Hugging Face', 'PvtV2', PVT_V2 | dict(linear_attention=True)),
    ('twins-svt-small', 'timm', 'twins_svt_small'),
    ('twins-svt-small', 'MMPretrain', 512, LIN, 'SVT', TWINS),
    ('twins-pcpvt-small', 'timm', 'twins_pcpvt_small'),
    ('twins-pcpvt-small', 'MMPretrain', 512, LIN, 'PCPVT', TWINS),
    ('mvitv2-tiny', 'timm', 'mvitv2_tiny'),
    ('mvitv2-tiny', 'MMPretrain', 768, LIN, 'MViT', dict(arch='tiny')),
    ('tnt-small', 'timm', 'tnt_s_legacy_patch16_224'),
    ('tnt-small', 'MMPretrain', 384, LIN, 'TNT', dict(arch='s')),
    ('resnet50_8xb32-90e_in1k', 'torchvision', 'resnet50'),
    ('resnet50_8xb32-90e_in1k', 'timm', 'resnet50'),
    ('resnet50_8xb32-90e_in1k', 'MMPretrain', 2048, LIN, 'ResNet', dict(depth=50)),
    ('resnet50_8xb32-90e_in1k', 'Hugging Face', 'ResNet', {}),
)
QUICK = [row for row in PUBLIC if row[:2] in (('deit-small', 'timm'), ('swin-tiny', 'MMPretrain'))]
QUICK += [row for row in PUBLIC if row[0] == 'pvt-small']


def slow_unless(quick, values):
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


def build_mmpretrain(width, head, kind, options):
    init_default_scope('mmpretrain')
    neck = dict(type='GlobalAveragePooling') if head == LIN and kind != 'TNT' else None
    head = dict(type=head, num_classes=1000, in_channels=width)
    return MODELS.build(dict(type='ImageClassifier', backbone=dict(type=kind, **options), neck=neck, head=head))


def build_hugging_face(family, options, suffix=''):
    import transformers

    config = getattr(transformers, f'{family}Config')(num_labels=1000, **options)
    return getattr(transformers, f'{family}ForImageClassification{suffix}')(config)


BUILDERS = dict(timm=timm.create_model, torchvision=torchvision.models.get_model, MMPretrain=build_mmpretrain)
BUILDERS['Hugging Face'] = build_hugging_face


def build_public(library, *source):
    """Away from zeros and ones, which hide what they multiply."""
    model = BUILDERS[library](*source)
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


@torch.no_grad()
def logits_of(model, images):
    """Of models of MMPretrain and ours in the order of their methods, of others by a call."""
    return average(model.head(model.extract_feat(images)) if hasattr(model, 'extract_feat') else model(images))


@pytest.mark.parametrize('row', slow_unless(QUICK, PUBLIC), ids=lambda row: f'{row[0]} from {row[1]}')
def test_a_librarys_own_file_gives_its_logits(row, tmp_path):
    torch.manual_seed(0)
    name, library, *source = row
    theirs = build_public(library, *source)
    path = tmp_path / 'model.safetensors' if library == 'Hugging Face' else tmp_path / 'model.pth'
    if library == 'Hugging Face':
        theirs.save_pretrained(tmp_path)
    else:
        torch.save(theirs.state_dict(), path)
    ours = get_model(name if 'in1k' in name else name + SUFFIX, path)
    images = torch.randn(1, 3, *[256 if name == 'swinv2-tiny' else 224] * 2)
    expected = logits_of(theirs, images)
    assert (logits_of(ours, images) - expected).abs().max() < 1e-4 * expected.abs().max()


@pytest.mark.slow
def test_mmpretrains_t2t_vit_takes_its_authors_scale(monkeypatch):
    """MMPretrain divides queries by the factor that it should multiply them by: corrected, its logits are ours."""
    torch.manual_seed(0)
    theirs = build_public('MMPretrain', 384, VIT, 'T2T_ViT', MIXED).double()
    ours = get_model('t2t-vit-t-14' + SUFFIX).double()
    lines = []
    monkeypatch.setattr('vt.checkpoints.weights.logger.info', lines.append)
    load_weights(ours, theirs.state_dict())
    assert 'format: MMPretrain T2T-ViT (its logits differ: it multiplies queries by sqrt(d)' in lines[0]
    images = torch.randn(1, 3, 224, 224, dtype=torch.float64)
    for part in theirs.modules():
        if isinstance(part, MultiheadAttention):
            scale = (part.input_dims // part.num_heads) ** -0.5
            part.scaled_dot_product_attention = partial(scaled_dot_product_attention, scale=scale)
    expected, found = logits_of(theirs, images), logits_of(ours, images)
    assert (found - expected).abs().max() < 1e-12 * expected.abs().max()


FLAT = ('token', 'pos', 'table', 'messenger')  # drawn alike in every axis


@cache
def read_files():
    """Of each model: our config's name, the source, the largest logit, the first ones, and shapes by name."""
    files = []
    for line in Path(__file__).with_name('authors_files.txt').read_text().splitlines():
        if line.startswith('# '):
            name, source, largest, first = line[2:].split(' | ')
            files.append((name, source, float(largest), [float(logit) for logit in first.split()], {}))
        else:
            pattern, shape = line.split(' ')
            sides = () if shape == '-' else tuple(int(side) for side in shape.split('x'))
            files[-1][-1].update((expanded, sides) for expanded in expand(pattern))
    return files


def expand(pattern):
    """``a.{0-1}.{b,c}`` to four names."""
    parts = [options(part) if index % 2 else [part] for index, part in enumerate(re.split(r'\{(.*?)\}', pattern))]
    return [''.join(chosen) for chosen in itertools.product(*parts)]


def options(text):
    numbers = re.fullmatch(r'(\d+)-(\d+)', text)
    return text.split(',') if not numbers else [str(n) for n in range(int(numbers[1]), int(numbers[2]) + 1)]


def draw(name, shape):
    """A tensor of a name, the same wherever it is drawn."""
    name = re.sub(r'^ps_layers\.\d\.position_layer\.', 'pos_layer.', name)  # one layer by several names
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    x = torch.randn(shape, generator=generator)
    if name.endswith('running_var'):
        return 1 + 0.1 * x.abs()
    if len(shape) > 1 and not any(word in name for word in FLAT):
        return x * math.prod(shape[1:]) ** -0.5
    return name.endswith(('weight', 'scale', 'gamma_1', 'gamma_2')) + 0.1 * x


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
    frames, side = [16] if 'k400' in name else [], 256 if name == 'swinv2-tiny' else 224
    images = torch.randn(1, 3, *frames, side, side, generator=torch.Generator().manual_seed(0))
    found = logits_of(model, images)[0, : len(first)]
    tolerance = 3e-4 if name == 't2t-vit-t-14' else 1e-4  # 1e-12 in float64
    assert (found - torch.tensor(first)).abs().max() < tolerance * largest


def swin():
    """A small one of ours, of seven classes."""
    return copy.deepcopy(build_swin())


@cache
def build_swin():
    init_default_scope('mmpretrain')
    cfg = Config.fromfile(find_config('swin-tiny' + SUFFIX)).model.to_dict()
    widths = [dict(channels=12 * 2**index, depth=1, num_heads=2) for index in range(4)]
    stages = [stage | width for stage, width in zip(cfg['backbone']['stages'], widths)]
    backbone = cfg['backbone'] | dict(stages=stages)
    head = dict(type='LinearClsHead', num_classes=7, in_channels=96)
    torch.manual_seed(0)
    return MODELS.build(dict(type='ImageClassifier', backbone=backbone, neck=cfg.get('neck'), head=head))


def microsoft(depth=1, classes=7):
    """A small file of Microsoft's Swin."""
    wanted = next(shapes for name, _, _, _, shapes in read_files() if name == 'swin-tiny')
    state = {}
    for name, shape in wanted.items():
        layer = re.match(r'layers\.(\d)\.(blocks\.(\d)|downsample)', name)
        if layer and int(layer[3] or 0) >= depth:
            continue
        sides = tuple(side // 8 if side % 96 == 0 else classes if side == 1000 else side for side in shape)
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
ZEROS = {name: 0 * tensor for name, tensor in WHOLE.items()}
COUNTED = {f'module.{name}': tensor for name, tensor in WHOLE.items()} | dict(n_averaged=torch.tensor(3))
CONTAINERS = {
    'none': lambda state: state,
    'state_dict': lambda state: dict(state_dict=state),
    'model': lambda state: dict(model=state, optimizer=dict(state={})),
    'model_state': lambda state: dict(model_state=state, epoch=1, cfg='a: 1'),
    'averages': lambda state: dict(state_dict_ema=state, state_dict=ZEROS),
    'averages of DeiT, which its authors do not score': lambda state: dict(model=state, model_ema=ZEROS),
    "averages of torchvision's trainer": lambda state: dict(model=ZEROS, model_ema=state | COUNTED),
    'empty averages': lambda state: dict(state_dict_ema={}, model_ema=None, state_dict=state),
}


@pytest.mark.parametrize('container', CONTAINERS)
@settings(max_examples=5)
@given(data=st.data())
def test_containers_and_prefixes_are_found(container, data):
    """With any wrappers, of which a backbone's may leave the head outside, and queries, keys and values apart."""
    wrappers = st.lists(st.sampled_from(['module', 'model', '_orig_mod', 'net', 'encoder']), max_size=2)
    state = without(WHOLE, '.qkv.') | apart(WHOLE) if data.draw(st.booleans()) else WHOLE
    state = renamed(state, '^(?!head)', 'backbone.') if data.draw(st.booleans()) else state
    prefix = ''.join(f'{name}.' for name in data.draw(wrappers))
    if container.startswith('averages of torch'):
        state, prefix = WHOLE, 'module.'
    file = CONTAINERS[container](renamed(state, '^', prefix))
    model = swin()
    load_weights(model, file)
    assert all(torch.equal(tensor, loaded_swin()[name]) for name, tensor in model.state_dict().items())
    assert len(load_part(swin(), file)) == len(loaded_swin())


@cache
def loaded_swin():
    model = swin()
    load_weights(model, dict(WHOLE))
    return model.state_dict()


def test_coordinates_that_count_from_another_window_are_refused():
    """Of a Swin v2 that was fine-tuned at a larger window than it was trained with."""
    backbone = get_model('swinv2-tiny_16xb64-300e_in1k').backbone
    theirs = timm.create_model('swinv2_tiny_window8_256', pretrained_window_sizes=(6,) * 4)
    tables = {name: table for name, table in theirs.named_buffers() if name.endswith('coords_table')}
    with pytest.raises(UserError, match=r'also has stages\.0\.blocks\.0\.attention\.part\.bias\.coordinates'):
        load_part(backbone, theirs.state_dict() | tables)


TABLE = 'layers.0.blocks.0.attn.relative_position_bias_table'
SECOND = {name: tensor for name, tensor in WHOLE.items() if 'layers.1.' in name}
QUERIES = {name: third for name, third in apart(WHOLE).items() if '.attn.q.' in name}
QKV = 'backbone.stages.0.blocks.0.attention.part.qkv'
BAD = {
    'other classes': (microsoft(classes=5), r'head.fc.weight has shape \(5, 96\), not \(7, 96\)'),
    'a block too many': (microsoft(depth=2), 'also has backbone.stages.0.blocks.1'),
    'a table of another window': (WHOLE | {TABLE: torch.ones(12, 2)}, 'the grid of its 12 positions is unknown'),
    'a head too many': (WHOLE | {'head_dist.weight': torch.ones(7, 96)}, 'also has head.fc_distillation.weight'),
    'half a prefix': (without(WHOLE, 'layers.1.') | renamed(SECOND, '^', 'net.'), 'lacks backbone.stages.1'),
    'queries alone': (without(WHOLE, '.qkv.') | QUERIES, f'lacks {QKV}'),
    'q, k and v apart and together': (WHOLE | apart(WHOLE), 'also has backbone.stages.0.blocks.0.attention.part.key'),
    'one tensor by two names': (WHOLE | {'norm3.weight': torch.zeros(96)}, 'are both backbone.stages.3.norm.weight of'),
}


@pytest.mark.parametrize('kind', BAD)
def test_what_does_not_fit_is_named_and_nothing_is_loaded(kind):
    (state, words), model = BAD[kind], swin()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(UserError, match=words) as raised:
        load_weights(model, dict(state))
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
    theirs, options = build_public(*pair[0].split()).double(), RESNETS[pair]
    maps = dict(out_type='featmap', out_indices=(0, 1, 2)) if 'vt.' in options['type'] else dict(out_indices=range(4))
    ours = MODELS.build(options | maps).double()
    ours.eval()
    load_part(ours, theirs.state_dict())
    images = torch.randn(1, 3, 32, 32, dtype=torch.float64)
    with torch.no_grad():
        found, expected = ours(images), maps_of(theirs, images)
    for one, other in zip(found, expected):
        assert (one - other).abs().max() < 1e-12 * other.abs().max()
