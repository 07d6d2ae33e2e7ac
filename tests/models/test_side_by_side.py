"""The levels of VT-FPN side by side compute what their parts compute one after the other, in fewer operations.

Whoever looks at the parts sees what passes through them, and changes no result.
"""

from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile

from vt.models import VTFPN, FilterTokenizer, Projector, record_attention
from vt.models.visual_transformers import vt_fpn
from vt.models.visual_transformers.grouped_linear import GroupedLinear
from vt.models.visual_transformers.side_by_side import (
    are_alike,
    are_linear,
    has_listeners,
    map_pixels,
    map_pixels_linearly,
)
from vt.ops import use_path

SIZES = [(8, 9, 7), (16, 5, 4), (32, 1, 1)]


def make(batch_size=2, dtype=torch.float64, **options):
    torch.manual_seed(0)
    neck = VTFPN([c for c, _, _ in SIZES], 16, **dict(token_channels=32) | options).to(dtype)
    for projector in neck.projectors:  # let tokens have a large effect
        nn.init.normal_(projector.value.weight)
    maps = [torch.randn(batch_size, *size, dtype=dtype).contiguous(memory_format=torch.channels_last) for size in SIZES]
    return neck, [x.requires_grad_() for x in maps]


def run(neck, maps, autocast=False):
    """Maps and all gradients."""
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        outs = neck(maps)
    return [*outs, *torch.autograd.grad(sum(out.square().sum() for out in outs), [*maps, *neck.parameters()])]


@pytest.fixture
def one_after_the_other(monkeypatch):
    """A function that lets the parts of the levels run by themselves from now on."""
    return lambda: monkeypatch.setattr(vt_fpn, 'can_relate', lambda *parts: False)


@pytest.mark.parametrize(('batch_size', 'options'), [
    (0, dict()),
    (1, dict(groups=1)),
    (3, dict(num_tokens=1)),
    (2, dict(tokenizer=dict(num_heads=2, scale_logits=True), projector=dict(scale_logits=True))),
    (2, dict(relation=None, no_norm_on_lateral=True, norm_cfg=dict(type='BN'))),
])  # fmt: skip
def test_side_by_side_is_one_after_the_other(one_after_the_other, batch_size, options):
    neck, maps = make(batch_size, **options)
    assert are_alike(neck.tokenizers, neck.projectors)
    assert are_linear(neck.lateral_convs)
    ours = run(neck, maps)
    one_after_the_other()
    torch.testing.assert_close(ours, run(neck, maps), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_autocast_casts_the_same(one_after_the_other, dtype):
    neck, maps = make(dtype=dtype)
    ours = run(neck, maps, autocast=True)
    one_after_the_other()
    torch.testing.assert_close(ours, run(neck, maps, autocast=True), rtol=0, atol=0)


def test_a_linear_map_of_pixels_is_a_convolution():
    x, weight, bias = (torch.randn(size, dtype=torch.float64) for size in ((2, 8, 5, 3), (16, 8, 1, 1), (16,)))
    x = x.contiguous(memory_format=torch.channels_last)
    ours = map_pixels_linearly(x, weight, bias)
    torch.testing.assert_close(ours, conv2d(x, weight, bias))
    assert ours.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(map_pixels(x.contiguous(), weight, bias), ours)


class ListeningMode(TorchFunctionMode):
    """Hands on what every convolution gives."""

    def __init__(self, see):
        self.see = see

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.conv2d:
            self.see(result)
        return result


@contextmanager
def replaced_forward(part, see):
    """A function in the place of a module's own ``forward``, as libraries wrap modules with it."""
    forward = part.forward
    part.forward = lambda *args: see(*args) or forward(*args)
    yield
    del part.forward


PARTS = ('lateral_convs.1', 'lateral_convs.1.conv', 'tokenizers.0', 'tokenizers.2.value', 'projectors.1')
PARTS += ('projectors.0.key', 'projectors.2.value')
LISTENERS = {name: lambda neck, see, name=name: neck.get_submodule(name).register_forward_hook(see) for name in PARTS}
LISTENERS |= {
    'before a tokenizer': lambda neck, see: neck.tokenizers[0].register_forward_pre_hook(see),
    'before a projector': lambda neck, see: neck.projectors[0].register_forward_pre_hook(see),
    'before every module': lambda neck, see: register_module_forward_pre_hook(see),
    'every module': lambda neck, see: register_module_forward_hook(see),
    'in the place of forward': lambda neck, see: replaced_forward(neck.tokenizers[0], see),
    'mode': lambda neck, see: ListeningMode(see),
}


@pytest.mark.parametrize('listener', LISTENERS)
def test_a_listener_sees_its_part_and_changes_nothing(listener):
    neck, maps = make(dtype=torch.float32)
    expected, seen = run(neck, maps), []
    with torch.no_grad():
        alone = neck(maps)
    with LISTENERS[listener](neck, lambda *what: seen.append(what)):
        torch.testing.assert_close(run(neck, maps), expected)
        assert seen
        seen.clear()
        with torch.no_grad():
            outs = neck(maps)
    assert seen
    assert all(map(torch.equal, outs, alone))


def test_asking_for_listeners_leaves_nothing_behind():
    part, calls = nn.ReLU(), []
    assert not has_listeners([part])
    part.register_forward_hook(lambda *args: calls.append('hook'))
    part.register_forward_pre_hook(lambda *args: calls.append('pre-hook'))
    assert has_listeners([part])
    part(torch.zeros(1))
    assert calls == ['pre-hook', 'hook']


@pytest.mark.parametrize('options', [
    dict(),
    dict(num_outs=4, add_extra_convs='on_output'),
    dict(norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
    dict(projector=dict(num_heads=2, query_groups=1)),
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
        outs = neck(maps)
    level = tokens[:, : neck.tokenizers[0].num_tokens]
    torch.testing.assert_close(records['projectors.0'].attention, neck.projectors[0].attention(laterals[0], level))
    assert torch.equal(records['projectors.0'].output, outs[0])


class OtherLinear(GroupedLinear):
    """What a library that adapts or quantises weights might put in the place of a matrix."""

    def forward(self, x):
        return 2 * super().forward(x)


OTHERS = {
    'tokenizers.1.value': lambda: OtherLinear(16, 32, 4),
    'tokenizers.1': lambda: FilterTokenizer(16, 32, num_tokens=3, groups=4),
    'projectors.2': lambda: Projector(16, 32, groups=2),
    'projectors.1': lambda: Projector(16, 32, groups=4, scale_logits=True),
}


@pytest.mark.parametrize('name', OTHERS)
def test_other_parts_are_taken_as_they_are(one_after_the_other, name):
    neck, maps = make()
    before = neck(maps)
    neck.set_submodule(name, OTHERS[name]().double())
    ours = neck(maps)
    assert not all(map(torch.equal, ours, before))
    one_after_the_other()
    torch.testing.assert_close(ours, neck(maps), rtol=1e-12, atol=1e-12)


def test_fewer_operations(one_after_the_other):
    """Of what a GPU is told beside the maps: products of tokens, casts, copies."""

    def count():
        neck, maps = make(dtype=torch.float32)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            run(neck, maps, autocast=True)
        names = ('aten::bmm', 'aten::_to_copy', 'aten::copy_', 'aten::clone', 'aten::cat', 'aten::add')
        return sum(event.name in names for event in profiler.events())

    side_by_side = count()
    one_after_the_other()
    assert side_by_side <= 0.8 * count()
