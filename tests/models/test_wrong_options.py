"""One table of options and inputs that do not fit: one line that names them, when a model is built or called."""

import pytest
import torch
from mmpretrain.registry import MODELS

from vt.models import (
    VTFPN,
    DynamicTokenizer,
    FeedForward,
    FilterTokenizer,
    MViT,
    Projector,
    RecurrentTokenizer,
    VTBackbone,
    VTResNet,
    VTResNetAnywhere,
    VTResNetCIFAR,
    Windows,
)

LOW = dict(modules=1, depth=1, channels=[8], num_heads=[1])
SWIN = dict(type='vt.WindowAttention', windows=dict(type='vt.Windows', window=4))
STAGE = dict(channels=16, depth=2, num_heads=2, embed=dict(type='vt.PatchEmbed', kernel_size=4), attention=SWIN)
CLASS = dict(type='vt.ClassAttention')
CELL = dict(type='vt.ReductionCell', in_channels=3, channels=16, kernel_size=3, stride=2)
CELL |= dict(dilations=[1, 2, 3], transform=False)


def fpn(**options):
    return VTFPN([4, 8], 8, token_channels=16, **options)


def wrapper(channels=384, backbone=('RegNet', 'regnetx_400mf'), **options):
    return VTBackbone(dict(type=backbone[0], arch=backbone[1]), channels, **options)


def stages(count=1, stage=None, **options):
    return MODELS.build(
        dict(type='vt.TokenBackbone', image_size=32, stages=[STAGE | (stage or {})] * count, **options)
    )  # fmt: skip


IMAGE = torch.randn(2, 3, 64, 64)
ROWS = [
    # The paper's modules.
    (lambda: FilterTokenizer(8, 9, groups=2), 'GroupedLinear: out_channels=9 is not divisible by groups=2'),
    (lambda: RecurrentTokenizer(8, 12)(torch.randn(1, 8, 2, 2), torch.randn(1, 3, 12)), 'the input has 3 tokens'),
    (lambda: DynamicTokenizer(16, 16, num_heads=4, groups=2), 'groups=2 is not divisible by num_heads=4'),
    (lambda: DynamicTokenizer(16, 16, num_tokens=1), 'num_tokens=1 must be at least 2'),
    (lambda: Projector(8, 12, query_groups=3), 'in_channels=8 is not divisible by'),
    (lambda: fpn(upsample_cfg=dict(mode='bilinear')), 'has no effect, nothing is upsampled'),
    (lambda: fpn(add_extra_convs=True), 'add_extra_convs without num_outs'),
    (lambda: fpn()([torch.randn(1, 4, 2, 2)]), 'input has 1 maps, but in_channels has 2'),
    (lambda: VTResNet(18)(torch.randn(1, 3, 31, 40)), '31x40 pixels is too small'),
    (lambda: VTResNetCIFAR(18)(torch.randn(1, 3, 7, 8)), r'7x8 pixels is too small .* must be at least 8x8'),
    (lambda: VTResNetAnywhere(18, positions=('layer5',)), r"positions=\('layer5',\) must be a list of distinct names"),
    (lambda: VTResNetAnywhere(18, frozen_stages=5), 'frozen_stages=5 does not exist; the last is 4'),
    (lambda: VTResNetAnywhere(18, out_type='maps'), "out_type='maps' is neither"),
    (lambda: wrapper(100)(IMAGE), r'in_channels=100, but RegNet returns \(2, 384, 2, 2\)'),
    (
        lambda: wrapper(320, ('ConvNeXt', 'atto'))(IMAGE),
        r'in_channels=320, but ConvNeXt returns \(2, 320\); it must re',
    ),
    # The survey's.
    (lambda: stages(stage=dict(attention=CLASS)), 'has 0 class tokens, but ClassAttention needs 1'),
    (
        lambda: stages(stage=dict(class_tokens=1, attention=CLASS, between=dict(type='vt.OnMap'))),
        'Block: between has no effect',
    ),
    (lambda: FeedForward(8, fc1_act_cfg=dict(type='ReLU')), 'FeedForward: fc1_act_cfg without local has no effect'),
    (lambda: MODELS.build(CELL), 'ReductionCell: channels=16 is not divisible by number of dilations=3'),
    (lambda: stages(stage=dict(peg_blocks=2)), 'peg_blocks without peg'),
    (lambda: stages(stage=dict(position=dict(type='torch.nn.Identity'))), 'Identity is not a vt.models.TokenPart'),
    (lambda: stages(out_indices=(1,)), r'out_indices=\[1\] do not exist; the stages are 0 to 0'),
    (lambda: stages(frozen_stages=1), 'frozen_stages=1 does not exist; the last is 0'),
    (lambda: stages(out_type='class_tokens'), "out_type='class_tokens', but the last stage has no class token"),
    (lambda: Windows(7, shift=7), 'shift=7 must be less than the sides of window='),
    (lambda: Windows((None, 7), shift=3), 'shift=3 must be less than the sides of window='),
    (lambda: MODELS.build(dict(type='vt.HRFormer', stages=[LOW])), 'it needs 2 of both, one per branch'),
    (lambda: stages(stage=dict(rezero=True, layer_scale=1.0)), 'rezero and layer_scale are both set'),
    (lambda: MViT(key_value_stride=[4, 2]), r'key_value_stride=\[4, 2\] has 2 entries for 4 stages'),
    (lambda: MViT(key_value_stride=(1, 4, 4)), r'key_value_stride=\(1, 4, 4\) must have 2 positive numbers'),
    (lambda: MViT(skip='half'), "skip='half' is not one of normalised, raw, none"),
    (lambda: MViT(class_tokens=0, out_type='class_tokens'), 'the last stage has no class token'),
]


@pytest.mark.parametrize(('make', 'words'), ROWS, ids=range(len(ROWS)))
def test_it_is_one_line(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert '\n' not in str(error.value)
