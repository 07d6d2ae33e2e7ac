"""Whoever looks at VT-FPN's parts sees the maps that pass through them, and changes no result."""

from contextlib import contextmanager

import pytest
import torch
from mmcv.cnn import ConvModule
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from vt.models import VTFPN, FilterTokenizer, Projector, record_attention
from vt.models.necks.side_by_side import has_listeners
from vt.ops import use_path

SIZES = [(8, 12, 8), (16, 6, 4)]
PLACE = (2, 16, 12, 8)  # of the first level's lateral map
MEMORY_FORMATS = [torch.contiguous_format, torch.channels_last]


def make(memory_format=torch.channels_last, **options):
    """A neck whose tokens speak loudly, and maps for it."""
    torch.manual_seed(0)
    neck = VTFPN([c for c, _, _ in SIZES], 16, token_channels=32, **options).eval()
    for projector in neck.projectors:
        nn.init.normal_(projector.value.weight)
    maps = [torch.randn(2, *size).contiguous(memory_format=memory_format) for size in SIZES]
    return neck.to(memory_format=memory_format), maps


class Keeper:
    """Keeps each map of the first level's size that it is shown, and a copy of it."""

    def __init__(self):
        self.kept = []

    def see(self, *seen):
        for tensor in seen:
            if isinstance(tensor, torch.Tensor) and tensor.shape == PLACE:
                self.kept.append((tensor.detach(), tensor.clone()))

    def pre_hook(self, part, args):
        self.see(*args)

    def hook(self, part, args, output):
        self.see(*args, output)

    def assert_unchanged(self):
        assert self.kept
        assert all(torch.equal(tensor, copy) for tensor, copy in self.kept)


class KeepingMode(TorchFunctionMode):
    """Shows a keeper what every convolution gives."""

    def __init__(self, keeper):
        self.keeper = keeper

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.conv2d:
            self.keeper.see(result)
        return result


@contextmanager
def replaced_forward(part, keeper):
    """A function in the place of a module's own ``forward``, as libraries wrap modules with it."""
    forward = part.forward

    def wrapper(*args, **kwargs):
        output = forward(*args, **kwargs)
        keeper.see(*args, output)
        return output

    part.forward = wrapper
    yield
    del part.forward


LISTENERS = dict(
    lateral=lambda neck, keeper: neck.lateral_convs[0].register_forward_hook(keeper.hook),
    convolution=lambda neck, keeper: neck.lateral_convs[0].conv.register_forward_hook(keeper.hook),
    tokenizer_before=lambda neck, keeper: neck.tokenizers[0].register_forward_pre_hook(keeper.pre_hook),
    tokenizer=lambda neck, keeper: neck.tokenizers[0].register_forward_hook(keeper.hook),
    projector_before=lambda neck, keeper: neck.projectors[0].register_forward_pre_hook(keeper.pre_hook),
    every_module_before=lambda neck, keeper: register_module_forward_pre_hook(keeper.pre_hook),
    every_module=lambda neck, keeper: register_module_forward_hook(keeper.hook),
    replaced_forward=lambda neck, keeper: replaced_forward(neck.tokenizers[0], keeper),
    mode=lambda neck, keeper: KeepingMode(keeper),
)


@pytest.mark.parametrize('memory_format', MEMORY_FORMATS)
@pytest.mark.parametrize('listener', LISTENERS)
@torch.no_grad()
def test_what_a_listener_keeps_stays(listener, memory_format):
    neck, maps = make(memory_format)
    alone, keeper = neck(maps), Keeper()
    with LISTENERS[listener](neck, keeper):
        outs = neck(maps)
    keeper.assert_unchanged()
    assert all(map(torch.equal, outs, alone))


@torch.no_grad()
def test_a_hook_sees_a_projectors_map_as_it_came_in():
    neck, maps = make()
    alone, seen = neck(maps), []
    hook = neck.projectors[0].register_forward_hook(lambda part, args, output: seen.append((*args, output)))
    outs = neck(maps)
    hook.remove()
    assert torch.equal(seen[0][0], neck.lateral_convs[0](maps[0]))
    assert all(map(torch.equal, outs, alone))
    assert torch.equal(seen[0][2], outs[0])


class KeepingTokenizer(FilterTokenizer):
    """Keeps the map that it gets."""

    def forward(self, x, tokens=None):
        self.kept = x, x.clone()
        return super().forward(x, tokens)


class KeepingProjector(Projector):
    """Keeps the map that it gets."""

    def forward(self, x, tokens):
        self.kept = x, x.clone()
        return super().forward(x, tokens)


class KeepingConvolution(nn.Conv2d):
    """Keeps the map that it gives."""

    def forward(self, x):
        result = super().forward(x)
        self.kept = result, result.clone()
        return result


class KeepingNorm(nn.BatchNorm2d):
    """Gives the map that it gets, and keeps it."""

    def forward(self, x):
        self.kept = x, x.clone()
        return x


STRANGERS = dict(
    tokenizer=dict(tokenizer=dict(type=KeepingTokenizer)),
    projector=dict(projector=dict(type=KeepingProjector)),
    convolution=dict(conv_cfg=dict(type=KeepingConvolution)),
    norm=dict(norm_cfg=dict(type=KeepingNorm)),
)


@pytest.mark.parametrize('stranger', STRANGERS)
@torch.no_grad()
def test_what_a_strangers_part_keeps_stays(stranger):
    neck, maps = make(**STRANGERS[stranger])
    neck(maps)
    kept = [part.kept for part in neck.modules() if hasattr(part, 'kept')]
    assert len(kept) == 2
    assert all(torch.equal(tensor, copy) for tensor, copy in kept)


@pytest.mark.parametrize('memory_format', MEMORY_FORMATS)
@pytest.mark.parametrize('options', [
    dict(),
    dict(num_outs=4),
    dict(num_outs=4, add_extra_convs='on_input'),
    dict(num_outs=4, add_extra_convs='on_lateral'),
    dict(num_outs=4, add_extra_convs='on_output'),
    dict(norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU')),
    dict(projector=dict(num_heads=2)),
    dict(projector=dict(num_heads=2, query_groups=1)),
    dict(tokenizer=dict(type='vt.PoolingTokenizer')),
    dict(tokenizer=dict(type='vt.ClusteringTokenizer')),
])  # fmt: skip
def test_results_and_inputs_are_as_with_gradients(options, memory_format):
    neck, maps = make(memory_format, **options)
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
