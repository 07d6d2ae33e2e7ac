"""``project_onto(overwrite=True)``: the result may lie in the map's memory, and is right wherever it lies."""

import pytest
import torch

from vt.ops import project_onto, use_path

DENSE = dict(
    contiguous=lambda: torch.randn(2, 12, 5, 7),
    channels_last=lambda: torch.randn(2, 5, 7, 12).movedim(-1, 1),
    pixels=lambda: torch.randn(2, 35, 12),
    channel_major_pixels=lambda: torch.randn(2, 12, 35).transpose(1, 2),
    one_pixel=lambda: torch.randn(2, 12, 1, 1),
    one_channel=lambda: torch.randn(2, 1, 5, 7),
    empty=lambda: torch.randn(0, 12, 5, 7),
    inside_others=lambda: torch.randn(4, 12, 5, 7)[1:3],
)
NOT_DENSE = dict(
    expanded_samples=lambda: torch.randn(1, 12, 5, 7).expand(2, -1, -1, -1),
    expanded_places=lambda: torch.randn(2, 12, 1, 1).expand(-1, -1, 5, 7),
    expanded_channels=lambda: torch.randn(2, 1, 5, 7).expand(-1, 12, -1, -1),
    expanded_pixels=lambda: torch.randn(2, 1, 12).expand(-1, 35, -1),
    expanded_samples_of_pixels=lambda: torch.randn(1, 35, 12).expand(2, -1, -1),
    overlapping=lambda: torch.randn(100).as_strided((2, 12, 6), (12, 1, 2)),
    every_second_row=lambda: torch.randn(2, 12, 10, 7)[:, :, ::2],
    rows_and_columns_swapped=lambda: torch.randn(2, 5, 7, 12).movedim(-1, 1).transpose(2, 3),
)


def operands(make, heads=1):
    """A map, and keys and values for it."""
    torch.manual_seed(0)
    x = make()
    channels = x.shape[2] if x.dim() == 3 else x.shape[1]
    return x, torch.randn(len(x), heads, 4, channels), torch.randn(len(x), heads, 4, channels // heads)


@pytest.mark.parametrize('path', ['plain', 'fused', 'sdpa'])
@pytest.mark.parametrize('heads', [1, 2])
@pytest.mark.parametrize('kind', [*DENSE, *NOT_DENSE])
@torch.no_grad()
def test_it_changes_no_result(path, heads, kind):
    x, keys, values = operands((DENSE | NOT_DENSE)[kind], heads if kind != 'one_channel' else 1)
    with use_path(path):
        expected = project_onto(x.clone(), keys, values, 0.7)
        before = x.clone()
        out = project_onto(x, keys, values, 0.7, overwrite=True)
    torch.testing.assert_close(out, expected)
    written = out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert written or torch.equal(x, before)
    assert not (written and kind in NOT_DENSE)


@pytest.mark.parametrize('kind', DENSE)
@torch.no_grad()
def test_the_fast_path_writes_bit_for_bit_the_same_into_a_dense_map(kind):
    x, keys, values = operands(DENSE[kind])
    with use_path('fused'):
        expected = project_onto(x, keys, values, 0.7)
        out = project_onto(x, keys, values, 0.7, overwrite=True)
    assert out.data_ptr() == x.data_ptr()
    assert torch.equal(out, expected)


@pytest.mark.parametrize('path', ['plain', 'fused', 'sdpa'])
def test_with_gradients_the_map_stays(path):
    x, keys, values = operands(DENSE['contiguous'])
    before, keys = x.clone(), keys.requires_grad_()
    with use_path(path):
        out = project_onto(x, keys, values, overwrite=True)
        (gradient,) = torch.autograd.grad(out.square().sum(), keys)
        (expected,) = torch.autograd.grad(project_onto(x, keys, values).square().sum(), keys)
    assert torch.equal(x, before)
    torch.testing.assert_close(gradient, expected)
