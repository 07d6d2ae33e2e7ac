"""VT-FPN: the published equations over all levels, and FPN's place in a config."""

import json
from itertools import accumulate

import published_equations as published
import pytest
import torch
from comparisons import assert_is_not_saturated, assert_same
from imagenet_like import resnet_of_scale
from mmengine.registry import MODELS
from mmseg.models.necks import FPN
from torch.nn.functional import interpolate
from torch.profiler import ProfilerActivity, profile

from vt.models import VTFPN, record_attention
from vt.ops import use_path

# In channels and map sizes of the levels; N, C, L, C_T.
SHAPES = [
    ([(8, 12, 10), (12, 6, 5), (16, 3, 3)], 2, 8, 4, 16),
    ([(8, 1, 1)], 1, 8, 1, 8),
    ([(4, 7, 3), (8, 4, 2)], 3, 12, 1, 8),
    ([(8, 13, 5), (8, 7, 3), (8, 4, 2), (8, 2, 1)], 1, 16, 5, 32),
]
OPTIONS = [
    dict(groups=1),
    dict(groups=4),
    dict(groups=2, relation=dict(num_heads=2, scale_logits=True), projector=dict(num_heads=4)),
]
MEMORY_FORMATS = [torch.contiguous_format, torch.channels_last]


def make(shape, **options):
    """A neck with weights at which no softmax is flat or saturated, and maps for it."""
    levels, n, c, num_tokens, token_channels = shape
    torch.manual_seed(len(levels))
    options = dict(num_tokens=num_tokens, token_channels=token_channels) | options
    neck = VTFPN([channels for channels, _, _ in levels], c, **options).double()
    for parameter in neck.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return neck, [torch.randn(n, *level, dtype=torch.float64) for level in levels]


def published_neck(neck, maps):
    """Equations 1, 3 and 4 sample by sample, the relation over the tokens of all levels."""
    outs = [[] for _ in maps]
    for sample in zip(*maps):
        laterals, tokens = [], []
        for x, lateral, tokenizer in zip(sample, neck.lateral_convs, neck.tokenizers):
            laterals.append(published.pixels(x) @ lateral.conv.weight[..., 0, 0].T + lateral.conv.bias)
            w_v = None if isinstance(tokenizer.value, torch.nn.Identity) else tokenizer.value.dense()
            tokens.append(published.filter_tokenizer(laterals[-1], tokenizer.weight.T, w_v))
        part = neck.relation
        matrices = [linear.dense() for linear in (part.key, part.query, part.feed_forward1, part.feed_forward2)]
        related = published.transformer(torch.cat(tokens), *matrices, part.num_heads, part.scale)
        for level, (x, t) in enumerate(zip(laterals, related.split(neck.tokenizers[0].num_tokens))):
            part = neck.projectors[level]
            w_v = None if isinstance(part.value, torch.nn.Identity) else part.value.dense()
            refined = published.projector(x, t, part.query.dense(), part.key.dense(), w_v, part.num_heads, part.scale)
            outs[level].append(refined.T.reshape(-1, *sample[level].shape[1:]))
    return [torch.stack(level) for level in outs]


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('option', OPTIONS)
@pytest.mark.parametrize('memory_format', MEMORY_FORMATS)
@pytest.mark.parametrize('path', ['plain', 'fused'])
def test_equals_the_published_equations_with_gradients(shape, option, memory_format, path):
    neck, maps = make(shape, **option)
    maps = [x.contiguous(memory_format=memory_format).requires_grad_() for x in maps]
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


def test_attention_of_each_level_can_be_read():
    neck, maps = make(SHAPES[0])
    with record_attention(neck) as records:
        outs = neck(maps)
    for level, (_, height, width) in enumerate(SHAPES[0][0]):
        tokenizer, projector = records[f'tokenizers.{level}'], records[f'projectors.{level}']
        assert tokenizer.attention.shape == (2, 1, 4, height, width)
        torch.testing.assert_close(tokenizer.attention.sum((-2, -1)), torch.ones(2, 1, 4, dtype=torch.float64))
        torch.testing.assert_close(projector.attention.sum(2), torch.ones(2, 1, height, width, dtype=torch.float64))
        assert torch.equal(projector.output, outs[level])
    assert records['relation'].attention.shape == (2, 1, 12, 12)


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
