"""The levels of VT-FPN side by side compute what their parts compute one after the other, in fewer operations."""

import pytest
import torch
from torch.nn.functional import conv2d
from torch.profiler import ProfilerActivity, profile

from vt.models import VTFPN, FilterTokenizer, Projector
from vt.models.grouped_linear import GroupedLinear
from vt.models.necks import vt_fpn
from vt.models.necks.side_by_side import are_linear, are_published, map_pixels, map_pixels_linearly

SIZES = [(8, 9, 7), (16, 5, 4), (32, 1, 1)]


def make(batch_size=2, dtype=torch.float64, **options):
    torch.manual_seed(0)
    neck = VTFPN([c for c, _, _ in SIZES], 16, **dict(token_channels=32) | options).to(dtype)
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
    return lambda: monkeypatch.setattr(vt_fpn, 'are_published', lambda *parts: False)


@pytest.mark.parametrize('batch_size', [0, 1, 3])
@pytest.mark.parametrize(
    'options',
    [
        dict(),
        dict(groups=1),
        dict(num_tokens=1),
        dict(tokenizer=dict(num_heads=2, scale_logits=True), projector=dict(scale_logits=True)),
        dict(relation=None, no_norm_on_lateral=True, norm_cfg=dict(type='BN')),
    ],
)
def test_side_by_side_is_one_after_the_other(one_after_the_other, batch_size, options):
    neck, maps = make(batch_size, **options)
    assert are_published(neck.tokenizers, neck.projectors)
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


PARTS = ('lateral_convs.1', 'lateral_convs.1.conv', 'tokenizers.0', 'tokenizers.2.value', 'projectors.1')
PARTS += ('projectors.0.key', 'projectors.0.query', 'projectors.2.value')


@pytest.mark.parametrize('name', PARTS)
def test_a_hook_sees_its_part(name):
    """W_Q is used by its transpose and has no forward pass to be seen, as ever."""
    neck, maps = make()
    expected = run(neck, maps)
    seen = []
    neck.get_submodule(name).register_forward_hook(lambda part, args, output: seen.append(output))
    torch.testing.assert_close(run(neck, maps), expected)
    assert len(seen) == (0 if name.endswith('query') else 1)


class OtherLinear(GroupedLinear):
    """What a library that adapts or quantises weights might put in the place of a matrix."""

    def forward(self, x):
        return 2 * super().forward(x)


def change_value(neck):
    neck.tokenizers[1].value = OtherLinear(16, 32, 4).double()


def change_tokens(neck):
    neck.tokenizers[1] = FilterTokenizer(16, 32, num_tokens=3, groups=4).double()


def change_groups(neck):
    neck.projectors[2] = Projector(16, 32, groups=2).double()


def change_scale(neck):
    neck.projectors[2] = Projector(16, 32, groups=4, scale_logits=True).double()


@pytest.mark.parametrize('change', [change_value, change_tokens, change_groups, change_scale])
def test_other_parts_are_taken_as_they_are(one_after_the_other, change):
    neck, maps = make()
    before = neck(maps)
    change(neck)
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
