"""Operations on tokens: attention as its equation, depthwise convolution as a video's; in bfloat16 up to rounding."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import conv3d

from vt.ops import attend as module
from vt.ops.attend import attend, attend_plainly
from vt.ops.depthwise import depthwise

SHAPES = st.tuples(*(st.integers(1, most) for most in (3, 4, 16, 16, 8, 8)))  # N, h, T, S, d, d'


def draw(shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    n, h, t, s, d, e = shape
    torch.manual_seed(sum(shape))
    return [torch.randn(n, h, *sides, dtype=dtype, requires_grad=True) for sides in ((t, d), (s, d), (s, e))]


def published(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None) -> Tensor:
    logits = torch.einsum('nhtd,nhsd->nhts', q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = (logits if mask is None else logits + mask).exp()
    return torch.einsum('nhts,nhse->nhte', weights / weights.sum(dim=-1, keepdim=True), v)


def assert_close(result: Tensor, expected: Tensor, inputs: list[Tensor], exact: list[Tensor], error: float) -> None:
    """Values, and gradients within twice the error."""
    torch.testing.assert_close(result.double(), expected, atol=error, rtol=error)
    grad = torch.randn_like(result)
    gradients = torch.autograd.grad(result, inputs, grad)
    for found, right in zip(gradients, torch.autograd.grad(expected, exact, grad.double()), strict=True):
        torch.testing.assert_close(found.double(), right, atol=2 * error, rtol=2 * error)


@pytest.mark.parametrize('path', [attend, attend_plainly])
@settings(max_examples=30)
@given(SHAPES, st.sampled_from([None, 0.3]), st.booleans())
def test_attention_and_its_gradients_are_the_equation(path, shape: tuple, scale: float | None, masked: bool) -> None:
    parts = draw(shape, torch.float64)
    mask = torch.randn(shape[:4], dtype=torch.float64) if masked else None
    assert_close(path(*parts, mask, scale=scale), published(*parts, mask, scale), parts, parts, 1e-9)


@settings(max_examples=20)
@given(SHAPES)
def test_training_in_bfloat16_is_the_equation_up_to_rounding(shape: tuple) -> None:
    parts = draw(shape, torch.bfloat16)
    exact = [part.detach().double().requires_grad_() for part in parts]
    assert_close(attend(*parts), published(*exact), parts, exact, 0.03)


def test_small_maps_alone_are_written_down_and_only_in_training_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    plain = module.attend_plainly
    monkeypatch.setattr(module, 'attend_plainly', lambda *args, **options: written.append(1) or plain(*args, **options))
    small, single = (draw((2, 3, 7, 5, 4, 6), dtype) for dtype in (torch.bfloat16, torch.float32))
    attend(*small)
    assert written == [1]
    attend(*single)
    with torch.no_grad():
        attend(*small)
    monkeypatch.setattr(module, 'LARGEST_MAP', 34)
    attend(*small)
    assert written == [1]


def convolve(tokens: torch.Tensor, weight: torch.Tensor, size, stride, padding) -> torch.Tensor:
    """The same by PyTorch's convolution of videos, ``(N, T', H', W', C)``."""
    videos = tokens.transpose(1, 2).unflatten(2, size)
    return conv3d(videos, weight, None, stride, padding, groups=len(weight)).permute(0, 2, 3, 4, 1)


SIDES, KERNELS, STRIDES = (st.tuples(*[st.integers(1, most)] * 3) for most in (9, 5, 4))


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
