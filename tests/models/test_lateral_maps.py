"""Whoever looks at VT-FPN's parts sees what passes through them, and changes no result."""

from contextlib import contextmanager

import pytest
import torch
from mmcv.cnn import ConvModule
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from vt.models import VTFPN, record_attention
from vt.models.necks.side_by_side import has_listeners
from vt.ops import use_path

SIZES = [(8, 12, 8), (16, 6, 4)]


def make(**options):
    """A neck whose tokens have a large effect, and maps for it."""
    torch.manual_seed(0)
    neck = VTFPN([c for c, _, _ in SIZES], 16, token_channels=32, **options).eval()
    for projector in neck.projectors:
        nn.init.normal_(projector.value.weight)
    maps = [torch.randn(2, *size).contiguous(memory_format=torch.channels_last) for size in SIZES]
    return neck.to(memory_format=torch.channels_last), maps


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


LISTENERS = dict(
    lateral=lambda neck, see: neck.lateral_convs[0].register_forward_hook(see),
    convolution=lambda neck, see: neck.lateral_convs[0].conv.register_forward_hook(see),
    tokenizer_before=lambda neck, see: neck.tokenizers[0].register_forward_pre_hook(see),
    tokenizer=lambda neck, see: neck.tokenizers[0].register_forward_hook(see),
    projector_before=lambda neck, see: neck.projectors[0].register_forward_pre_hook(see),
    every_module_before=lambda neck, see: register_module_forward_pre_hook(see),
    every_module=lambda neck, see: register_module_forward_hook(see),
    replaced_forward=lambda neck, see: replaced_forward(neck.tokenizers[0], see),
    mode=lambda neck, see: ListeningMode(see),
)


@pytest.mark.parametrize('listener', LISTENERS)
@torch.no_grad()
def test_a_listener_sees_its_part_and_changes_nothing(listener):
    neck, maps = make()
    alone, seen = neck(maps), []
    with LISTENERS[listener](neck, lambda *what: seen.append(what)):
        outs = neck(maps)
    assert seen
    assert all(map(torch.equal, outs, alone))


@pytest.mark.parametrize('options', [
    dict(),
    dict(num_outs=4, add_extra_convs='on_output'),
    dict(norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
    dict(projector=dict(num_heads=2, query_groups=1)),
    dict(tokenizer=dict(type='vt.ClusteringTokenizer')),
])  # fmt: skip
def test_results_and_inputs_are_as_with_gradients(options):
    neck, maps = make(**options)
    before, expected = [x.clone() for x in maps], neck(maps)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            outs = neck(maps)
        assert all(torch.equal(own, other) for own, other in zip(outs, expected, strict=True))
        assert [out.stride() for out in outs] == [out.stride() for out in expected]
    assert all(map(torch.equal, maps, before))


@torch.no_grad()
def test_recorded_attention_is_that_of_the_map_that_came_in():
    neck, maps = make()
    laterals = [convolve(x) for convolve, x in zip(neck.lateral_convs, maps)]
    tokens = neck.relation(torch.cat([tokenize(x) for tokenize, x in zip(neck.tokenizers, laterals)], dim=1))
    with record_attention(neck) as records, use_path('fused'):
        outs = neck(maps)
    level = tokens[:, : neck.tokenizers[0].num_tokens]
    torch.testing.assert_close(records['projectors.0'].attention, neck.projectors[0].attention(laterals[0], level))
    assert torch.equal(records['projectors.0'].output, outs[0])


REGISTERS = ['register_forward_hook', 'register_forward_pre_hook']


@pytest.mark.parametrize('register', REGISTERS)
def test_listeners_are_found_where_they_are(register):
    parts = ConvModule(4, 4, 1, act_cfg=None), nn.ReLU()
    assert not has_listeners(parts)
    with getattr(parts[0].conv, register)(lambda *args: None):
        assert not has_listeners(parts)  # a part of a part is one more to ask for
        assert has_listeners(parts[0].modules())
    with getattr(parts[1], register)(lambda *args: None, with_kwargs=True, prepend=True):
        assert has_listeners(parts)
    assert not has_listeners([*parts, *parts[0].modules()])


def test_asking_for_listeners_leaves_nothing_behind():
    part, calls = nn.ReLU(), []
    part.register_forward_hook(lambda *args: calls.append('hook'))
    part.register_forward_pre_hook(lambda *args: calls.append('pre-hook'))
    assert has_listeners([part])
    part(torch.zeros(1))
    assert calls == ['pre-hook', 'hook']
