"""Attention of tokens to tokens: as the equation, and by the plain path where a CPU trains in bfloat16."""

import pytest
import torch
from torch import Tensor

from vt.ops import attend as module
from vt.ops.attend import attend, attend_plainly

SHAPES = [(2, 3, 7, 5, 4, 6), (1, 1, 1, 1, 8, 8), (3, 2, 1, 9, 4, 4), (2, 4, 16, 16, 8, 8)]


def draw(shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    n, h, t, s, d, e = shape
    torch.manual_seed(sum(shape))
    return [torch.randn(n, h, *sides, dtype=dtype, requires_grad=True) for sides in ((t, d), (s, d), (s, e))]


def published(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, scale: float | None = None) -> Tensor:
    logits = torch.einsum('nhtd,nhsd->nhts', q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = (logits if mask is None else logits + mask).exp()
    return torch.einsum('nhts,nhse->nhte', weights / weights.sum(dim=-1, keepdim=True), v)


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('scale', [None, 0.3])
@pytest.mark.parametrize('masked', [False, True])
@pytest.mark.parametrize('path', [attend, attend_plainly])
def test_attention_and_its_gradients_are_the_equation(path, masked: bool, scale: float | None, shape: tuple) -> None:
    parts = draw(shape, torch.float64)
    mask = torch.randn(shape[0], shape[1], shape[2], shape[3], dtype=torch.float64) if masked else None
    result, expected = path(*parts, mask, scale=scale), published(*parts, mask, scale)
    torch.testing.assert_close(result, expected)
    grad = torch.randn_like(expected)
    gradients = torch.autograd.grad(result, parts, grad)
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, parts, grad))


@pytest.mark.parametrize('shape', SHAPES)
def test_training_in_bfloat16_is_the_equation_up_to_rounding(shape: tuple) -> None:
    parts = draw(shape, torch.bfloat16)
    exact = [part.detach().double().requires_grad_() for part in parts]
    result, expected = attend(*parts), published(*exact)
    torch.testing.assert_close(result.double(), expected, atol=0.03, rtol=0.03)
    grad = torch.randn_like(result)
    gradients = torch.autograd.grad(result, parts, grad)
    for given, right in zip(gradients, torch.autograd.grad(expected, exact, grad.double())):
        torch.testing.assert_close(given.double(), right, atol=0.06, rtol=0.06)


def test_small_maps_alone_are_written_down_and_only_in_training_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    plain = module.attend_plainly
    monkeypatch.setattr(module, 'attend_plainly', lambda *args, **options: written.append(1) or plain(*args, **options))
    small, single = draw(SHAPES[0], torch.bfloat16), draw(SHAPES[0], torch.float32)
    attend(*small)
    assert written == [1]
    attend(*single)
    with torch.no_grad():
        attend(*small)
    monkeypatch.setattr(module, 'LARGEST_MAP', 34)
    attend(*small)
    assert written == [1]
