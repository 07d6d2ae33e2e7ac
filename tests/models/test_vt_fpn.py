"""VT-FPN: the published equations over all levels, FPN's place in a config, and its levels side by side.

Side by side they compute what their parts compute one after the other, in fewer operations; whoever looks at the parts
sees what passes through them, and changes no result.
"""

import copy
import pickle
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace

import part_equations as equations
import pytest
import torch
from comparisons import assert_all_learn, assert_is_not_saturated, assert_near, assert_same, randomize
from hypothesis import given, settings
from hypothesis import strategies as st
from imagenet_like import resnet_of_scale
from mmengine.registry import MODELS
from mmseg.models.necks import FPN
from torch import nn
from torch.nn.functional import interpolate
from torch.nn.modules.module import register_module_forward_hook

from vt.models import VTFPN, Projector, optimize_for, record_attention
from vt.models.visual_transformers import fused_levels
from vt.models.visual_transformers.fused_levels import FusedVTFPN, convolve_linearly, is_linear
from vt.models.visual_transformers.grouped_linear import GroupedLinear
from vt.ops import use_path
from vt.ops.precision import constant_weights

pytestmark = pytest.mark.usefixtures('either_library')
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
    neck = neck.to(memory_format=memory_format)
    for choose, path in product((lambda neck: neck, fuse), ('plain', 'fused')):
        with use_path(path):
            ours = choose(neck)(maps)
        assert_same(ours, published_neck(neck, maps), [*maps, *neck.parameters()])


@pytest.mark.parametrize('options', [
    dict(num_outs=6),
    dict(num_outs=6, add_extra_convs=True),
    dict(num_outs=6, add_extra_convs='on_input', relu_before_extra_convs=True),
    dict(num_outs=5, add_extra_convs='on_output', norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
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
    assert_all_learn(neck)


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


def test_tokens_speak_softly_at_first():
    """What is written back starts at a tenth of the scale that a projector has by default."""
    torch.manual_seed(0)
    stds = [part.value.weight.std() for part in VTFPN([4, 8], 256, projector=dict(value_gain=1.0)).projectors]
    soft = [part.value.weight.std() for part in VTFPN([4, 8], 256).projectors]
    torch.testing.assert_close(torch.stack(soft), torch.stack(stds) / 10, rtol=0.05, atol=0)


@pytest.mark.parametrize('norm_cfg', [None, dict(type='BN')])
def test_tokens_start_calm_on_a_pretrained_backbone(norm_cfg):
    torch.manual_seed(0)
    backbone, images = resnet_of_scale(18, 1, out_indices=(0, 1, 2, 3))
    neck = VTFPN([64, 128, 256, 512], norm_cfg=norm_cfg)
    neck.init_weights()
    with torch.no_grad(), record_attention(neck) as records:
        neck(backbone(interpolate(images, size=128)))  # maps of 4x4 pixels and more
    assert_is_not_saturated(records)
    for name, record in records.items():
        if not name.startswith('projectors'):
            assert 0.05 < record.output.square().mean().sqrt() < 4, name


SIZES = [(8, 9, 7), (16, 5, 4), (32, 1, 1)]


def fuse(neck):
    """Choose implementations as a model gets them, in the layout that it has."""
    return optimize_for(neck, channels_last=False)


def make(batch_size=2, dtype=torch.float64, **options):
    torch.manual_seed(0)
    neck = VTFPN([c for c, _, _ in SIZES], 16, **dict(token_channels=32) | options).to(dtype)
    for projector in neck.projectors:  # let tokens have a large effect
        nn.init.normal_(projector.value.weight)
    maps = [torch.randn(batch_size, *size, dtype=dtype).contiguous(memory_format=torch.channels_last) for size in SIZES]
    return fuse(neck), [x.requires_grad_() for x in maps]


def run(neck, maps, autocast=False):
    """Maps and all gradients."""
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        outs = neck(maps)
    return [*outs, *torch.autograd.grad(sum(out.square().sum() for out in outs), [*maps, *neck.parameters()])]


def is_at_once(neck, maps):
    return isinstance(neck, FusedVTFPN) and neck._can_fuse(maps)


@pytest.fixture
def one_after_the_other(monkeypatch):
    """A function that lets the parts of the levels run by themselves from now on."""
    return lambda: monkeypatch.setattr(FusedVTFPN, 'relate_levels', VTFPN.relate_levels)


@pytest.mark.parametrize(('batch_size', 'options'), [
    (0, dict()),
    (3, dict(num_tokens=1)),
    (2, dict(tokenizer=dict(scale_logits=True), projector=dict(scale_logits=True))),
    (2, dict(relation=None, no_norm_on_lateral=True, norm_cfg=dict(type='BN'))),
])  # fmt: skip
def test_side_by_side_is_one_after_the_other(one_after_the_other, batch_size, options):
    neck, maps = make(batch_size, **options)
    assert is_at_once(neck, maps)
    ours = run(neck, maps)
    one_after_the_other()
    torch.testing.assert_close(ours, run(neck, maps), rtol=1e-12, atol=1e-12)


def test_autocast_casts_the_same(one_after_the_other):
    """Gradients of a map are the exception: their sum is rounded once, not twice."""
    neck, maps = make(dtype=torch.float32)
    ours = run(neck, maps, autocast=True)
    one_after_the_other()
    theirs = run(neck, maps, autocast=True)
    torch.testing.assert_close(ours[:3], theirs[:3], rtol=0, atol=0)
    assert_near(ours[3:], theirs[3:], torch.finfo(torch.bfloat16).eps)


def count_products(neck, maps):
    """Batched matrix products of a compiled neck, which is one graph."""
    counts = []

    def backend(graph, inputs):
        counts.append(sum(node.target is torch.bmm for node in graph.graph.nodes))
        return graph.forward

    torch.compiler.reset()
    with torch.no_grad():
        torch.compile(neck, fullgraph=True, backend=backend)(maps)
    return counts


def test_compiled_they_are_side_by_side_too(one_after_the_other):
    """But for parts that were replaced after the compiler's last look, or have a hook."""
    neck, maps = make(dtype=torch.float32)
    (together,) = count_products(neck, maps)
    with neck.projectors[0].register_forward_hook(lambda *what: None):
        (hooked,) = count_products(neck, maps)
    one_after_the_other()
    assert count_products(neck, maps) == [hooked]
    assert hooked >= together + 2 * 4  # of each matrix one instead of three


@pytest.mark.parametrize('memory_format', MEMORY_FORMATS)
def test_a_lateral_layer_as_a_linear_one(memory_format):
    """The gradient of its weight has the strides of the weight, which distributed training expects."""
    torch.manual_seed(0)
    conv = nn.Conv2d(5, 7, 1).double().to(memory_format=memory_format)
    x = torch.randn(2, 5, 3, 4, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    found = []
    for value in (convolve_linearly(conv, x), conv(x).flatten(2).mT):
        (gradient,) = torch.autograd.grad(value.square().sum(), conv.weight)
        found.append([value, gradient])
    torch.testing.assert_close(*found)
    assert found[0][1].stride() == conv.weight.stride()


def test_constant_weights_are_joined_once_in_each_precision():
    neck, maps = make(dtype=torch.float32)
    with torch.no_grad(), constant_weights():
        plain = neck(maps)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast('cpu', dtype):
                assert {out.dtype for out in neck(maps)} == {dtype}
        assert all(map(torch.equal, neck(maps), plain))
        for projector in neck.projectors:
            projector.value.weight.zero_()
        assert all(map(torch.equal, neck(maps), plain))  # with the weights of the first call
    with torch.no_grad():
        assert not any(map(torch.equal, neck(maps), plain))


def test_which_lateral_layers_are_linear_on_a_gpu():
    on_gpu = SimpleNamespace(is_cuda=True, is_contiguous=lambda memory_format: True)
    assert is_linear(VTFPN([5], 8).lateral_convs[0], on_gpu)
    assert not is_linear(VTFPN([5], 8).lateral_convs[0], torch.ones(1, 5, 2, 2))
    assert not is_linear(VTFPN([5], 8, norm_cfg=dict(type='BN')).lateral_convs[0], on_gpu)


@pytest.mark.parametrize('path', ['fused', 'plain'])
@pytest.mark.parametrize('frozen', [False, True])
def test_biases_get_their_gradients_from_the_tokenizers(one_after_the_other, monkeypatch, path, frozen):
    """As on a GPU, where the kernel that computes the gradients of the maps sums them; also those of gradients."""
    neck, maps = make(num_outs=5, add_extra_convs='on_lateral')
    for convolve in neck.lateral_convs:
        convolve.conv.weight.requires_grad_(not frozen)
    leaves = [parameter for parameter in neck.parameters() if parameter.requires_grad]
    maps = [x.detach() for x in maps] if frozen else maps

    def gradients():
        first = torch.autograd.grad(sum(out.square().sum() for out in neck(maps)), leaves, create_graph=True)
        second = torch.autograd.grad(sum(gradient.square().sum() for gradient in first), leaves)
        return *torch.autograd.grad(sum(out.square().sum() for out in neck(maps)), leaves), *first, *second

    with use_path(path):
        monkeypatch.setattr(fused_levels, 'is_plain', lambda: False)
        monkeypatch.setattr(fused_levels, 'is_linear', lambda convolve, x: True)
        ours = gradients()
        one_after_the_other()
        theirs = gradients()
    assert_near(ours, theirs, 1e-9)


@contextmanager
def replaced_forward(part, see):
    """A function in the place of a module's own ``forward``, as libraries wrap modules with it."""
    forward = part.forward
    part.forward = lambda *args: see(*args) or forward(*args)
    yield
    del part.forward


PARTS = 'lateral_convs.1.conv', 'tokenizers.2.value', 'projectors.1', 'projectors.0.key'
LISTENERS = {name: lambda neck, see, name=name: neck.get_submodule(name).register_forward_hook(see) for name in PARTS}
LISTENERS |= {
    'before a tokenizer': lambda neck, see: neck.tokenizers[0].register_forward_pre_hook(see),
    'every module': lambda neck, see: register_module_forward_hook(see),
    'in the place of forward': lambda neck, see: replaced_forward(neck.tokenizers[0], see),
}


@pytest.mark.parametrize('copied', [copy.deepcopy, lambda neck: pickle.loads(pickle.dumps(neck))])
@pytest.mark.parametrize('listener', LISTENERS)
def test_a_copy_has_listeners_of_its_own(listener, copied):
    original, maps = make(dtype=torch.float32)
    neck, seen = copied(original), []
    assert is_at_once(neck, maps)
    with LISTENERS[listener](neck, lambda *what: seen.append(what)):
        neck(maps)
        assert seen
        assert is_at_once(original, maps) == (listener != 'every module')
    assert is_at_once(neck, maps)


@pytest.mark.parametrize('listener', LISTENERS)
def test_a_listener_sees_its_part_and_changes_nothing(listener):
    neck, maps = make(dtype=torch.float32)
    expected, seen = run(neck, maps), []
    with torch.no_grad():
        alone = neck(maps)
    with LISTENERS[listener](neck, lambda *what: seen.append(what)):
        assert_near(run(neck, maps), expected, 1e-4)
        assert seen
        seen.clear()
        with torch.no_grad():
            outs = neck(maps)
    assert seen
    torch.testing.assert_close(outs, alone, rtol=1e-5, atol=1e-5)


def test_hooks_of_gradients_and_hooks_that_were_there_before_are_called():
    neck, maps = make()
    seen = []
    neck.projectors[1].register_full_backward_hook(lambda *what: seen.append(what))
    for model in (neck, fuse(copy.deepcopy(neck))):
        seen.clear()
        run(model, maps)
        assert seen


@pytest.mark.parametrize('options', [
    dict(),
    dict(norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
    dict(tokenizer=dict(type='vt.ClusteringTokenizer')),
])  # fmt: skip
def test_results_and_inputs_are_as_with_gradients(options):
    neck, maps = make(dtype=torch.float32, **options)
    neck.eval()
    before, expected = [x.clone() for x in maps], neck(maps)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            outs = neck(maps)
        assert all(torch.equal(own, other) for own, other in zip(outs, expected, strict=True))
        assert [out.stride() for out in outs] == [out.stride() for out in expected]
    assert all(map(torch.equal, maps, before))


@torch.no_grad()
def test_recorded_attention_is_that_of_the_map_that_came_in():
    neck, maps = make(dtype=torch.float32)
    laterals = [convolve(x) for convolve, x in zip(neck.lateral_convs, maps)]
    tokens = neck.relation(torch.cat([tokenize(x) for tokenize, x in zip(neck.tokenizers, laterals)], dim=1))
    with record_attention(neck) as records, use_path('fused'):
        assert not is_at_once(neck, maps)
        outs = neck(maps)
    assert is_at_once(neck, maps)
    level = tokens[:, : neck.tokenizers[0].num_tokens]
    torch.testing.assert_close(records['projectors.0'].attention, neck.projectors[0].attention(laterals[0], level))
    assert torch.equal(records['projectors.0'].output, outs[0])


class OtherLinear(GroupedLinear):
    """What a library that adapts or quantises weights might put in the place of a matrix."""

    def forward(self, x):
        return 2 * super().forward(x)


CHANGES = {
    'a matrix': lambda neck: neck.set_submodule('tokenizers.1.value', OtherLinear(16, 32, 4).double()),
    'a projector': lambda neck: neck.set_submodule('projectors.2', Projector(16, 32, groups=2).double()),
    'a class': lambda neck: setattr(neck.tokenizers[0].value, '__class__', OtherLinear),
    'an option': lambda neck: setattr(neck.projectors[1], 'scale', 0.5),
}


@pytest.mark.parametrize('name', CHANGES)
def test_parts_and_options_that_change_later_count(one_after_the_other, name):
    neck, maps = make()
    before = neck(maps)
    CHANGES[name](neck)
    ours = neck(maps)
    assert not all(map(torch.equal, ours, before))
    one_after_the_other()
    torch.testing.assert_close(ours, neck(maps), rtol=1e-12, atol=1e-12)
