"""VT-FPN: the published equations over all levels, and FPN's place in a config."""

import json
from itertools import accumulate

import part_equations as equations
import pytest
import torch
from comparisons import assert_is_not_saturated, assert_same, randomize
from hypothesis import given, settings
from hypothesis import strategies as st
from imagenet_like import resnet_of_scale
from mmengine.registry import MODELS
from mmseg.models.necks import FPN
from torch.nn.functional import interpolate
from torch.profiler import ProfilerActivity, profile

from vt.models import VTFPN, record_attention
from vt.ops import use_path

MEMORY_FORMATS = [torch.contiguous_format, torch.channels_last]
LEVELS = st.lists(st.tuples(st.sampled_from([4, 8, 12]), st.integers(1, 9), st.integers(1, 7)), min_size=1, max_size=4)
OPTIONS = [
    dict(),
    dict(relation=dict(num_heads=2, scale_logits=True), projector=dict(num_heads=4)),
    dict(tokenizer=dict(num_heads=2, scale_logits=True), projector=dict(scale_logits=True)),
]


def published_neck(neck, maps):
    """Equations 1, 3 and 4, the relation over the tokens of all levels."""
    laterals, tokens = [], []
    for x, lateral, tokenizer in zip(maps, neck.lateral_convs, neck.tokenizers):
        weight, bias = lateral.conv.weight[..., 0, 0], lateral.conv.bias
        laterals.append(torch.einsum('nchw,dc->ndhw', x, weight) + bias[:, None, None])
        tokens.append(equations.filter_tokenizer(tokenizer, laterals[-1]))
    related = equations.transformer(neck.relation, torch.cat(tokens, dim=1)).chunk(len(maps), dim=1)
    return [equations.projector(part, x, t) for part, x, t in zip(neck.projectors, laterals, related)]


@settings(max_examples=25)
@given(
    LEVELS,
    st.integers(1, 3),  # N
    st.integers(1, 5),  # L
    st.sampled_from([8, 16]),  # C
    st.sampled_from([8, 16, 32]),  # C_T
    st.sampled_from([1, 2, 4]),  # groups
    st.sampled_from(OPTIONS),
    st.sampled_from(MEMORY_FORMATS),
)
def test_equals_the_published_equations_with_gradients(
    levels, n, num_tokens, c, token_channels, groups, options, memory_format
):
    torch.manual_seed(len(levels))
    sizes = dict(num_tokens=num_tokens, token_channels=token_channels, groups=groups)
    neck = randomize(VTFPN([channels for channels, _, _ in levels], c, **sizes, **options))
    maps = [torch.randn(n, *level, dtype=torch.float64) for level in levels]
    maps = [x.contiguous(memory_format=memory_format).requires_grad_() for x in maps]
    for path in ('plain', 'fused'):
        with use_path(path):
            ours = neck.to(memory_format=memory_format)(maps)
        assert_same(ours, published_neck(neck, maps), [*maps, *neck.parameters()])


@pytest.mark.parametrize('options', [
    dict(num_outs=4),
    dict(num_outs=6),
    dict(num_outs=6, add_extra_convs=True),
    dict(num_outs=6, add_extra_convs='on_input', relu_before_extra_convs=True),
    dict(num_outs=5, add_extra_convs='on_lateral'),
    dict(num_outs=5, add_extra_convs='on_output', norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
    dict(num_outs=3, start_level=1),
    dict(num_outs=2, start_level=1, end_level=3),
    dict(num_outs=4, norm_cfg=dict(type='BN'), no_norm_on_lateral=True),
])  # fmt: skip
def test_takes_fpns_arguments_and_gives_fpns_shapes(options):
    maps = [torch.randn(2, c, h, w) for c, h, w in [(4, 33, 21), (6, 17, 11), (8, 9, 6), (10, 5, 3)]]
    fpn = FPN([4, 6, 8, 10], 8, **options)
    neck = MODELS.build(dict(type='vt.VTFPN', in_channels=[4, 6, 8, 10], out_channels=8, token_channels=16, **options))
    neck.init_weights()
    outs = neck(maps)
    assert isinstance(outs, tuple)
    assert [out.shape for out in outs] == [out.shape for out in fpn(maps)]
    sum(out.square().mean() for out in outs).backward()
    for name, parameter in neck.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize('memory_format', MEMORY_FORMATS)
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_is_near_float64_in_the_same_memory_format(memory_format, dtype):
    torch.manual_seed(0)
    neck = VTFPN([32, 64], 32, token_channels=64, projector=dict(value_gain=4.0))
    neck.init_weights()
    maps = [torch.randn(2, 32, 9, 7), torch.randn(2, 64, 5, 4)]
    exact = neck.double()([x.double() for x in maps])
    laterals = [lateral(x.double()) for lateral, x in zip(neck.lateral_convs, maps)]
    outs = neck.to(dtype, memory_format=memory_format)([x.to(dtype, memory_format=memory_format) for x in maps])
    tolerance = 16 * torch.finfo(dtype).eps
    for own, other, lateral in zip(outs, exact, laterals):
        assert (other - lateral).abs().max() > 4 * tolerance  # what the tokens say can be seen at this precision
        torch.testing.assert_close(own.double(), other, rtol=tolerance, atol=tolerance)
        assert own.is_contiguous(memory_format=memory_format)


def test_a_training_step_needs_less_memory_than_fpns(tmp_path):
    sizes = [(16, 64, 80), (32, 32, 40), (64, 16, 20), (128, 8, 10)]
    maps = [torch.randn(1, *size).contiguous(memory_format=torch.channels_last).requires_grad_() for size in sizes]
    channels = [c for c, _, _ in sizes]
    necks = VTFPN(channels, 64, num_tokens=2, token_channels=64), FPN(channels, 64, 4)  # C and L in proportion
    ours, theirs = (_peak_of_a_step(neck.to(memory_format=torch.channels_last), maps, tmp_path) for neck in necks)
    assert ours < theirs


def _peak_of_a_step(neck, maps, folder):
    """Bytes that a step of the neck allocates beside its weights and inputs, gradients to both included."""
    gradients = [torch.randn_like(out) for out in neck(maps)]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        torch.autograd.grad(neck(maps), [*maps, *neck.parameters()], gradients)
    profiler.export_chrome_trace(str(folder / 'trace.json'))
    events = json.loads((folder / 'trace.json').read_text())['traceEvents']
    changes = sorted((event['ts'], event['args']['Bytes']) for event in events if event['name'] == '[memory]')
    return max(accumulate(change for _, change in changes))


def test_tokens_speak_softly_at_first():
    """What is written back starts at a tenth of the scale that a projector has by default."""
    torch.manual_seed(0)
    stds = [part.value.weight.std() for part in VTFPN([4, 8], 256, projector=dict(value_gain=1.0)).projectors]
    soft = [part.value.weight.std() for part in VTFPN([4, 8], 256).projectors]
    torch.testing.assert_close(torch.stack(soft), torch.stack(stds) / 10, rtol=0.05, atol=0)


def test_parts_can_be_left_out():
    maps = [torch.randn(2, 4, 8, 6), torch.randn(2, 8, 4, 3)]
    neck = VTFPN([4, 8], 8, token_channels=16, relation=None, projector=None)
    for out, lateral, x in zip(neck(maps), neck.lateral_convs, maps):
        assert torch.equal(out, lateral(x))


@pytest.mark.parametrize('norm_cfg', [None, dict(type='BN')])
@pytest.mark.parametrize(('depth', 'channels'), [(18, [64, 128, 256, 512]), (50, [256, 512, 1024, 2048])])
def test_tokens_start_calm_on_a_pretrained_backbone(depth, channels, norm_cfg):
    torch.manual_seed(0)
    backbone, images = resnet_of_scale(depth, 1, out_indices=(0, 1, 2, 3))
    neck = VTFPN(channels, norm_cfg=norm_cfg)
    neck.init_weights()
    with torch.no_grad(), record_attention(neck) as records:
        neck(backbone(interpolate(images, size=128)))  # maps of 4x4 pixels and more
    assert_is_not_saturated(records)
    for name, record in records.items():
        if not name.startswith('projectors'):
            assert 0.05 < record.output.square().mean().sqrt() < 4, name
