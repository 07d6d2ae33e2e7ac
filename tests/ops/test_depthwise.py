"""Depthwise convolution of tokens: as PyTorch's of videos, and in bfloat16 up to rounding."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn.functional import conv3d

from vt.ops.depthwise import depthwise


def convolve(tokens: torch.Tensor, weight: torch.Tensor, size, stride, padding) -> torch.Tensor:
    """The same by PyTorch's convolution of videos, ``(N, T', H', W', C)``."""
    videos = tokens.transpose(1, 2).unflatten(2, size)
    return conv3d(videos, weight, None, stride, padding, groups=len(weight)).permute(0, 2, 3, 4, 1)


SIDES = st.tuples(*[st.integers(1, 9)] * 3)
KERNELS, STRIDES = (st.tuples(*[st.integers(1, most)] * 3) for most in (5, 4))


@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float64, 1e-10), (torch.bfloat16, 0.1)])
@settings(max_examples=40)
@given(SIDES, KERNELS, STRIDES)
def test_forward_and_gradients_are_those_of_a_convolution_of_videos(dtype, tolerance, size, kernel, stride):
    """Of tokens that are part of a larger tensor, too; each side is padded by half of its kernel."""
    torch.manual_seed(0)
    n, c, padding = 2, 6, tuple((taps - 1) // 2 for taps in kernel)
    assume(all(side + 2 * pad >= taps for side, pad, taps in zip(size, padding, kernel)))
    tokens = torch.randn(n, 1 + size[0] * size[1] * size[2], 2 * c, dtype=dtype)[:, 1:, c:].requires_grad_()
    weight = torch.randn(c, 1, *kernel, dtype=dtype, requires_grad=True)
    exact = [part.detach().double().requires_grad_() for part in (tokens, weight)]
    result, expected = depthwise(tokens, weight, size, stride, padding), convolve(*exact, size, stride, padding)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=tolerance)
    grad = torch.randn_like(result)
    found = torch.autograd.grad(result, (tokens, weight), grad)
    for own, right in zip(found, torch.autograd.grad(expected, exact, grad.double())):
        torch.testing.assert_close(own.double(), right, atol=2 * tolerance, rtol=tolerance)
