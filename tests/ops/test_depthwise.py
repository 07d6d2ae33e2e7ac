"""Depthwise convolution of tokens: as PyTorch's of videos, and in bfloat16 up to rounding."""

import pytest
import torch
from torch.nn.functional import conv3d

from vt.ops.depthwise import depthwise

# Size of the grid, kernel, stride, padding.
CASES = [
    ((1, 7, 5), (1, 3, 3), (1, 1, 1), (0, 1, 1)),
    ((1, 8, 6), (1, 3, 3), (1, 2, 2), (0, 1, 1)),
    ((5, 9, 4), (3, 3, 3), (1, 2, 2), (1, 1, 1)),
    ((4, 8, 8), (3, 5, 5), (2, 4, 4), (1, 2, 2)),
    ((9, 4, 4), (5, 1, 3), (3, 1, 1), (2, 0, 1)),
    ((4, 4, 4), (2, 2, 2), (2, 2, 2), (0, 0, 0)),
    ((1, 4, 4), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
    ((2, 3, 3), (3, 3, 3), (4, 1, 1), (1, 1, 1)),
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0)),
]


def convolve(tokens: torch.Tensor, weight: torch.Tensor, size, stride, padding) -> torch.Tensor:
    """The same by PyTorch's convolution of videos, ``(N, T', H', W', C)``."""
    videos = tokens.transpose(1, 2).unflatten(2, size)
    return conv3d(videos, weight, None, stride, padding, groups=len(weight)).permute(0, 2, 3, 4, 1)


@pytest.mark.parametrize(('size', 'kernel', 'stride', 'padding'), CASES)
@pytest.mark.parametrize(('dtype', 'tolerance'), [(torch.float64, 1e-10), (torch.bfloat16, 0.1)])
def test_forward_and_gradients_are_those_of_a_convolution_of_videos(size, kernel, stride, padding, dtype, tolerance):
    """Of tokens that are part of a larger tensor, too."""
    torch.manual_seed(0)
    n, c = 2, 6
    tokens = torch.randn(n, 1 + size[0] * size[1] * size[2], 2 * c, dtype=dtype)[:, 1:, c:].requires_grad_()
    weight = torch.randn(c, 1, *kernel, dtype=dtype, requires_grad=True)
    exact = [part.detach().double().requires_grad_() for part in (tokens, weight)]
    result, expected = depthwise(tokens, weight, size, stride, padding), convolve(*exact, size, stride, padding)
    assert result.dtype == dtype
    torch.testing.assert_close(result.double(), expected, atol=tolerance, rtol=tolerance)
    grad = torch.randn_like(result)
    found = torch.autograd.grad(result, (tokens, weight), grad)
    for given, right in zip(found, torch.autograd.grad(expected, exact, grad.double())):
        torch.testing.assert_close(given.double(), right, atol=2 * tolerance, rtol=tolerance)
