"""How the survey's models start: the distribution of each kind of parameter, as the authors' code draws it."""

import math
import re

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT
from torch import nn

from vt.apis import find_config
from vt.errors import UserError
from vt.models.layer_init import LayerInit

pytestmark = pytest.mark.filterwarnings('ignore:Unnecessary conv bias', 'ignore:In MMCV v1.4.4')

# The standard deviation of the kinds of parameters. 'pytorch' is 1 / sqrt(3 fan in), of weights and biases; 'fan_out'
# sqrt(2 / fan out), of a group; 'xavier' sqrt(2 / (fan in + fan out)); 'zeros' and 'ones' are not drawn.
COMMON = [
    (r'Norm(1d|2d)?\.weight', 'ones'),
    (r'Norm(1d|2d)?\.bias', 'zeros'),
    (r'Linear\.weight', 0.02),
    (r'Linear\.bias', 'zeros'),
    (r'Conv[123]d\.(weight|bias)', 'pytorch'),
    (r'TokenPooling\.weight', 'pytorch'),  # a convolution
    (r'Position\.|PositionBias\.|Messenger(Bias|Embed)\.|relative\.tables|class_tokens', 0.02),
]
DEIT = 'facebookresearch/deit 7e160fe models.py, timm 0.3.2 vision_transformer.py'
SWIN = 'microsoft/Swin-Transformer f82860b models/swin_transformer.py'
TWINS = 'Meituan-AutoML/Twins c1ff671 gvt.py, CPVTV2._init_weights'
PVTV2 = 'whai362/PVT 57e2dfa classification/pvt_v2.py'
CONVOLUTIONS = [(r'Conv2d\.weight', 'fan_out'), (r'Conv2d\.bias', 'zeros')]
AS_CONVOLUTIONS = [(r'backbone.*fc[12] Linear\.(weight|bias)', 'pytorch')]
SQUEEZED = [*AS_CONVOLUTIONS, (r'squeeze.*weight', 0.02), (r'squeeze.*bias', 'zeros')]
MIXED = [(r'mix.*weight', 0.02), (r'mix.*bias', 'zeros'), (r'LayerScale', '1e-5')]
SWIN_V2 = [(r'post_norm .*weight', 'zeros'), (r'log_scale', 'log 10'), (r'(query|value)_bias', 'zeros')]
PYCLS = [(r'attention\.part\.proj Linear\.weight', 'pytorch'), (r'head', 'zeros'), (r'Linear\.weight', 'xavier')]
PYCLS += [(r'layers\.\d\.conv', 'out'), (r'patch.*weight', 'last'), (r'patch.*bias', 'zeros')]
# Of each model what differs, and whose code it is. Models of one part in DeiT-S, or without public code, start as the
# model that they are made of.
STARTS = dict.fromkeys(('vit-base', 'deit-small', 'deit-small-distilled'), (DEIT, []))
STARTS |= dict.fromkeys(('vit-sparse', 'vit-performer', 'vit-tokenlearner'), (DEIT, []))
STARTS |= dict.fromkeys(('swin-tiny', 'gg-tiny', 'hswin-tiny'), (SWIN, []))
STARTS |= dict.fromkeys(('cpvt-small-gap', 'twins-pcpvt-small', 'twins-svt-small'), (TWINS, CONVOLUTIONS))
STARTS |= dict.fromkeys(('pvtv2-b2', 'pvtv2-b2-li'), (PVTV2, CONVOLUTIONS))
STARTS |= {
    't2t-vit-t-14': ('yitu-opensource/T2T-ViT 0f63dc9 models/t2t_vit.py', []),
    'pvt-small': ('whai362/PVT 57e2dfa classification/pvt.py', []),
    'rest-small': ('wofmanaf/ResT b9245d3 models/rest.py', [(r'Conv2d\.weight', 0.02)]),
    'cswin-tiny': ('microsoft/CSWin-Transformer f111ae2 models/cswin.py', []),
    'ceit-small': ('coeusguo/ceit 44c16d3 ceit_model.py', [*AS_CONVOLUTIONS, (r'neck.*layers', 'zeros')]),
    'swinv2-tiny': ('microsoft/Swin-Transformer f82860b models/swin_transformer_v2.py', SWIN_V2),
    'p2t-small': ('yuhuan-wu/P2T acd5e64 p2t.py', AS_CONVOLUTIONS),
    'shuffle-tiny': ('mulinmeng/Shuffle-Transformer 8ba81ea', [(r'Conv2d\.weight', 0.02), (r'Conv2d\.bias', 'zeros')]),
    'localvit-small': ('ofsoundof/LocalViT f497260 models/localvit.py', SQUEEZED),
    'cait-s24': ('facebookresearch/deit 7e160fe cait_models.py', MIXED),
    'deepvit-small': ('zhoudaquan/dvit_repo 1ccb152 models/deep_vision_transformer.py', []),
    'vit-rezero': (f'{DEIT}; majumderb/rezero e2c94a8', [(r'ReZero', 'zeros')]),
    'vit-early-conv': (
        'facebookresearch/pycls 5719de6 pycls/models/vit.py; its class token starts at zero, biases of the MLP at 1e-6',
        PYCLS,
    ),
    'elsa-swin-tiny': ('damo-cv/ELSA f3b7ac7', [(r'stages\.[0-2].*qkv Linear', 'pytorch'), (r'ghost_shift', 0.02)]),
    'msg-tiny': ('hustvl/MSG-Transformer dcb8dc3 models/msg_transformer.py', []),
    'mvitv2-tiny': ('timm 1.0 mvitv2.py; SlowFast draws otherwise, see below', []),
    'vitae-small': ('ViTAE-Transformer/ViTAE-Transformer aebf1d7 Image-Classification/vitae/vitmodules.py', []),
    'ps-vit-b14': ('yuexy/PS-ViT a63a397 models/ps_vit.py', [(r'moves|shifts', 'zeros')]),
    'lv-vit-small': ('zihangJiang/TokenLabeling 9dbfd59 tlt/models/lvvit.py', []),
    'hrformer-small': ('HRNet/HRFormer 1245b88 cls/models/hrt.py', [(r'Linear\.(weight|bias)', 'pytorch')]),
}

TINY_TNT = dict(embed_dims_outer=96, embed_dims_inner=24, num_layers=2, num_heads_outer=6, num_heads_inner=4)


def build(config: Config) -> nn.Module:
    """A model as it starts, two blocks a stage, with those of both ends of a list."""
    config = config.model
    backbone = config.backbone.to_dict()
    for stage in backbone.get('stages', []):
        if 'modules' in stage:
            stage['modules'] = 1
        else:
            stage.update({key: [value[0], value[-1]] for key, value in stage.items() if isinstance(value, list)})
            stage['depth'] = min(2, stage['depth'])
    own = {key: config[key] for key in ('neck', 'head') if key in config}
    model = MODELS.build(dict(type='ImageClassifier', backbone=backbone, **own))
    torch.manual_seed(0)
    model.init_weights()
    return model


def named_parameters(model: nn.Module) -> dict[str, tuple[nn.Module, nn.Parameter]]:
    """Each with its layer; a name is ``path.of.the.layer Class.weight``."""
    return {
        f'{path} {type(layer).__name__}.{key}': (layer, parameter)
        for path, layer in model.named_modules()
        for key, parameter in layer.named_parameters(recurse=False)
    }


def deviation(kind: str | float, layer: nn.Module) -> float:
    """The standard deviation that a kind means in a layer."""
    if isinstance(kind, float):
        return kind
    weight = layer.weight
    fan_in = weight[0].numel()
    fan_out = weight.shape[0] * weight[0, 0].numel() // getattr(layer, 'groups', 1)
    return dict(
        pytorch=(3 * fan_in) ** -0.5,
        fan_out=(2 / fan_out) ** 0.5,
        xavier=(2 / (fan_in + fan_out)) ** 0.5,
        out=(2 / weight.shape[0]) ** 0.5,  # pycls's stem
        last=weight.shape[0] ** -0.5,  # and its last convolution
    )[kind]


VALUES = {'zeros': 0.0, '0.02': 0.02, 'ones': 1.0, 'log 10': math.log(10), '1e-5': 1e-5}


def assert_starts(model: nn.Module, rules: list[tuple[str, str | float]]) -> None:
    """Each parameter is that of the first rule that fits its name; all that a rule is of are looked at together."""
    drawn = {rule: [] for rule, _ in rules}
    for name, (layer, parameter) in named_parameters(model).items():
        fitting = [(rule, kind) for rule, kind in rules if re.search(rule, name)]
        assert fitting, f'no rule for {name}'
        rule, kind = fitting[0]
        if kind in VALUES:
            torch.testing.assert_close(parameter.data, torch.full_like(parameter, VALUES[kind]), msg=name)
        else:
            found = parameter.data.flatten() / deviation(kind, layer)
            drawn[rule].append(found)
            error = 6 / len(found) ** 0.5
            assert abs(found.mean()) < error, name
            assert len(found) < 100 or abs(found.square().mean().sqrt() - 1) < error, (name, kind, found.std())
    for rule, found in drawn.items():
        if found:
            found = torch.cat(found)
            assert abs(found.std() - 1) < 0.02 + 4 / len(found) ** 0.5, (rule, found.std())


@pytest.mark.parametrize('name', STARTS)
def test_a_model_starts_as_its_authors_draw_it(name):
    assert_starts(build(Config.fromfile(find_config(f'{name}_16xb64-300e_in1k'))), [*STARTS[name][1], *COMMON])


@pytest.mark.parametrize('name', ['mvit-base16_in1k', 'mvitv2-small-16x4_k400'])
@pytest.mark.parametrize('slowfast', [False, True])
def test_mvit_starts_as_slowfast_draws_it_on_request(name, slowfast, tmp_path):
    """facebookresearch/SlowFast 287ec00, slowfast/models/video_model_builder.py."""
    start = ROOT / 'configs/_base_/models/mvit_slowfast-start.py'
    more = f", '{start}']\nmodel = _base_.slowfast_start\n" if slowfast else ']\n'
    (tmp_path / 'leaf.py').write_text(f"_base_ = ['{find_config(name)}'{more}")
    config = Config.fromfile(tmp_path / 'leaf.py')
    config.model.backbone.arch = dict(channels=32, depths=[1, 2])
    config.model.head.in_channels = 64
    theirs = [(r'(Linear|Norm)\.bias', '0.02'), (r'(Conv[23]d|TokenPooling)\.weight', 0.02)]
    assert_starts(build(config), [*theirs, *COMMON] if slowfast else COMMON)


def test_tnt_starts_as_its_authors_draw_it():
    """huawei-noah/CV-Backbones 25531f7 tnt_pytorch/tnt.py; MMPretrain's code draws Q, K and V by Xavier."""
    config = Config.fromfile(find_config('tnt-small_8xb128-310e-authors_in1k'))
    config.model.backbone.arch = TINY_TNT
    own = [(r'MultiheadAttention\.in_proj_weight', 0.02), (r'TNT\.', 0.02)]
    assert_starts(build(config), [*own, *COMMON])


def test_a_start_of_no_layer_is_refused():
    model = nn.Sequential(nn.Conv2d(8, 4, 3), nn.Linear(10, 10))
    with pytest.raises(UserError, match='Sequential has no Conv2d or Linear whose name matches'):
        LayerInit(['Linear', 'Conv2d'], names='fc')(model)
