"""Attention of tokens to tokens: as the equation, and by the plain path where a CPU trains in bfloat16."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vt.ops import attend as module
from vt.ops.attend import attend, attend_plainly

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
