"""Options, inputs and parts of a user's own that do not fit: one line that names them, when built or called."""

from functools import partial

import pytest
import torch
from torch import nn

import vt
from vt.errors import UserError
from vt.models import (
    VTFPN,
    DynamicTokenizer,
    FeedForward,
    FilterTokenizer,
    GraphConvolution,
    MViT,
    Projector,
    RecurrentTokenizer,
    TokenTransformer,
    VTBackbone,
    VTModule,
    VTResNet,
    VTResNetCIFAR,
    Windows,
)
from vt.models.survey.blocks.block import Block
from vt.registry import MODELS

LOW = dict(modules=1, depth=1, channels=[8], num_heads=[1])
SWIN = dict(type='vt.WindowAttention', windows=dict(type='vt.Windows', window=4))
STAGE = dict(channels=16, depth=2, num_heads=2, embed=dict(type='vt.PatchEmbed', kernel_size=4), attention=SWIN)
CLASS = dict(type='vt.ClassAttention')
CELL = dict(type='vt.ReductionCell', in_channels=3, channels=16, kernel_size=3, stride=2)
CELL |= dict(dilations=[1, 2, 3], transform=False)


def fpn(**options):
    return VTFPN([4, 8], 8, token_channels=16, **options)


def stages(count=1, stage=None, **options):
    return MODELS.build(
        dict(type='vt.TokenBackbone', image_size=32, stages=[STAGE | (stage or {})] * count, **options)
    )  # fmt: skip


IMAGE = torch.randn(2, 3, 64, 64)
REGNET = dict(type='RegNet', arch='regnetx_400mf')
ROWS = [
    # The paper's modules.
    (lambda: FilterTokenizer(8, 9, groups=2), 'GroupedLinear: out_channels=9 is not divisible by groups=2'),
    (lambda: RecurrentTokenizer(8, 12)(torch.randn(1, 8, 2, 2), torch.randn(1, 3, 12)), 'the input has 3 tokens'),
    (lambda: RecurrentTokenizer(8, 12)(torch.randn(1, 8, 2, 2)), 'requires tokens of a previous module'),
    (lambda: DynamicTokenizer(16, 16, num_heads=4, groups=2), 'groups=2 is not divisible by num_heads=4'),
    (lambda: DynamicTokenizer(16, 16, num_tokens=1), 'num_tokens=1 must be at least 2'),
    (lambda: Projector(8, 12, query_groups=3), 'in_channels=8 is not divisible by'),
    (lambda: fpn(upsample_cfg=dict(mode='bilinear')), 'has no effect, nothing is upsampled'),
    (lambda: fpn(add_extra_convs=True), 'add_extra_convs without num_outs'),
    (lambda: fpn()([torch.randn(1, 4, 2, 2)]), 'input has 1 maps, but in_channels has 2'),
    (lambda: VTResNet(18)(torch.randn(1, 3, 31, 40)), '31x40 pixels is too small'),
    (lambda: VTResNetCIFAR(18)(torch.randn(1, 3, 7, 8)), r'7x8 pixels is too small .* at least 8x8 are required'),
    (lambda: VTResNet(18, positions=('layer5',)), r"positions=\('layer5',\) must be a list of distinct names"),
    (lambda: VTResNet(18, frozen_stages=5), 'frozen_stages=5 does not exist; the last is 4'),
    (lambda: VTResNet(18, out_type='maps'), "out_type='maps' must be"),
    (lambda: VTBackbone(REGNET, 100)(IMAGE), r'in_channels=100, but RegNet returns \(2, 384, 2, 2\)'),
    # The survey's.
    (lambda: stages(stage=dict(attention=CLASS)), 'has 0 class tokens, but ClassAttention requires 1'),
    (
        lambda: stages(stage=dict(class_tokens=1, attention=CLASS, between=dict(type='vt.OnMap'))),
        'Block: between has no effect',
    ),
    (lambda: FeedForward(8, fc1_act_cfg=dict(type='ReLU')), 'FeedForward: fc1_act_cfg without local has no effect'),
    (lambda: MODELS.build(CELL), 'ReductionCell: channels=16 is not divisible by number of dilations=3'),
    (lambda: stages(stage=dict(peg_blocks=2)), 'peg_blocks without peg'),
    (lambda: stages(stage=dict(drop_path=0.1), drop_path_rate=0.3), r'drop_path_rate=0\.3 has no effect'),
    (
        lambda: stages(stage=dict(position=dict(type='torch.nn.Identity'))),
        'Identity must be a subclass of vt.models.TokenPart',
    ),
    (lambda: stages(out_indices=(1,)), r'out_indices=\[1\] do not exist; the stages are 0 to 0'),
    (lambda: stages(out_type='class_tokens'), "out_type='class_tokens', but the last stage has no class token"),
    (lambda: Windows(7, shift=7), 'shift=7 must be less than the sides of window='),
    (lambda: MODELS.build(dict(type='vt.HRFormer', stages=[LOW])), 'both must have 2, one per branch'),
    (lambda: stages(stage=dict(rezero=True, layer_scale=1.0)), 'rezero and layer_scale are both set'),
    (lambda: MViT(key_value_stride=[4, 2]), r'key_value_stride=\[4, 2\] has 2 entries for 4 stages'),
    (lambda: MViT(key_value_stride=(1, 4, 4)), r'key_value_stride=\(1, 4, 4\) must have 2 positive numbers'),
    (lambda: MViT(skip='half'), "skip='half' is not one of normalised, raw, none"),
]


@pytest.mark.parametrize(('make', 'words'), ROWS, ids=range(len(ROWS)))
def test_an_option_that_does_not_fit_is_one_line(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('number', [0, -1])
@pytest.mark.parametrize(
    ('part', 'name'),
    [
        *((partial(FilterTokenizer, 8), name) for name in ('token_channels', 'num_tokens', 'groups', 'num_heads')),
        *((partial(Projector, 8), name) for name in ('token_channels', 'groups', 'query_groups', 'num_heads')),
        *((TokenTransformer, name) for name in ('token_channels', 'groups', 'num_heads')),
        (GraphConvolution, 'num_tokens'),
        (partial(VTFPN, [4, 8], 8), 'num_tokens'),
        (partial(VTResNet, 18), 'token_channels'),
        (partial(VTResNet, 18), 'num_modules'),
        (partial(VTBackbone, REGNET, 384), 'num_modules'),
    ],
)
def test_a_number_below_one_is_refused(part, name, number):
    with pytest.raises(UserError, match=f'{name}={number} must be at least 1'):
        part(**{'token_channels': 12} | {name: number})


class Means(vt.Tokenizer):
    def pool(self, x, tokens):
        groups = x.flatten(2).transpose(1, 2).tensor_split(self.num_tokens, dim=1)  # N, HW / L, C
        return torch.stack([group.mean(dim=1) for group in groups], dim=1)


class FewerMeans(Means):
    def pool(self, x, tokens):
        return super().pool(x, tokens)[:, :2]


class Flattened(nn.Module):
    def __init__(self, **widths):
        super().__init__()

    def forward(self, x, *others):
        return x.flatten(1)


class Mean(vt.TokenPart):
    """Its result would be added to every token."""

    def __init__(self, channels, num_heads=None, size=None):
        super().__init__()

    def forward(self, x, size):
        return x.mean(dim=1, keepdim=True)


class Undecided(Mean):
    """What it gives depends on the values, so it can't be asked without any."""

    def forward(self, x, size):
        return x if x.sum() > 0 else -x


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for part in (Means, FewerMeans, Flattened, Mean, Undecided):
        monkeypatch.setitem(MODELS.module_dict, part.__name__, part)


def build_module(**parts):
    usual = dict(
        tokenizer=dict(type='vt.FilterTokenizer'), relation=dict(type='vt.TokenTransformer'), projector=None
    ) | {name: dict(type=f'vt.{part}') for name, part in parts.items()}
    return VTModule(8, 12, **usual)


@pytest.mark.parametrize(
    ('parts', 'words'),
    [
        (dict(tokenizer='FewerMeans'), r'FewerMeans.pool returns \(2, 2, 8\), not .*, here \(N, 16, 8\)'),
        (dict(tokenizer='Flattened'), r'Flattened returns .* it must be \(N, num_tokens, token_channels\)'),
        (dict(relation='Flattened'), r'Flattened returns shape \(2, 192\) .* that of the tokens'),
        (dict(projector='Flattened'), r'Flattened returns .* must be that of the map'),
    ],
)
def test_parts_of_a_module(parts, words):
    with pytest.raises(UserError, match=words):
        build_module(**parts)


def test_a_module_of_own_parts_is_built_as_it_is():
    module = build_module(tokenizer='Means')
    assert module.tokenizer(torch.rand(1, 8, 5, 4)).shape == (1, 16, 12)
    assert {parameter.device.type for parameter in module.parameters()} == {'cpu'}


def test_a_module_has_the_published_parts_or_given_modules():
    usual = VTModule(8, 12)
    assert [*map(type, usual.children())] == [FilterTokenizer, TokenTransformer, Projector]
    means, projector = Means(8, 12, num_tokens=4), Projector(8, 12)
    module = VTModule(8, 12, means, dict(num_heads=2), projector)
    assert (module.tokenizer, module.projector) == (means, projector)
    assert (type(module.relation), module.relation.num_heads) == (TokenTransformer, 2)
    assert [x.shape for x in module(torch.rand(1, 8, 5, 4))] == [(1, 8, 5, 4), (1, 4, 12)]


def block(**parts):
    usual = dict(attention='Attention', feed_forward='FeedForward') | parts
    configs = {name: dict(type=f'vt.{part}') for name, part in usual.items()}
    return Block(channels=8, size=(3, 4), num_heads=2, norm_cfg=dict(type='LN'), **configs)


@pytest.mark.parametrize('name', ['attention', 'feed_forward'])
def test_parts_of_a_block(name):
    with pytest.raises(
        UserError, match=r'Mean returns shape \(2, 1, 8\) for input \(2, 12, 8\): it must be that of the input'
    ):
        block(**{name: 'Mean'})
    assert block(**{name: 'Undecided'})(torch.ones(2, 12, 8), (3, 4)).shape == (2, 12, 8)
