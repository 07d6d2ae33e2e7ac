"""The equations of the paper, written out as they stand: the oracle of the tests.

Pixels are projected here, every matrix is dense, every softmax is spelled out, one sample at a time. Matrices act from
the right.
"""

import torch
from torch import Tensor


def softmax(x: Tensor, dim: int) -> Tensor:
    x = x - x.max(dim=dim, keepdim=True).values
    return x.exp() / x.exp().sum(dim=dim, keepdim=True)


def split(x: Tensor, heads: int) -> list[Tensor]:
    return list(x.split(x.shape[-1] // heads, dim=-1))


def filter_tokenizer(x: Tensor, w_a: Tensor, w_v: Tensor | None, heads: int = 1, scale: float = 1.0) -> Tensor:
    """X ``(P, C)``, W_A ``(C, L)``, W_V ``(C, C_T)`` to T ``(L, C_T)``: equation 1."""
    slices = []
    for x_h, w_h in zip(split(x, heads), split(w_a.T, heads)):
        a = softmax(x_h @ w_h.T * scale, dim=0)  # P, L
        slices.append(a.T @ x_h)
    t = torch.cat(slices, dim=-1)
    return t if w_v is None else t @ w_v


def recurrent_tokenizer(
    x: Tensor, t_in: Tensor, w_tr: Tensor, w_v: Tensor | None, heads: int = 1, scale: float = 1.0
) -> Tensor:
    """X ``(P, C)``, T_in ``(L, C_T)``, W_{T->R} ``(C_T, C)``: equation 2."""
    w_r = t_in @ w_tr  # L, C
    return filter_tokenizer(x, w_r.T, w_v, heads, scale)


def transformer(t: Tensor, k: Tensor, q: Tensor, f1: Tensor, f2: Tensor, heads: int = 1, scale: float = 1.0) -> Tensor:
    """T ``(L, C_T)``, K and Q ``(C_T, d)``, F1 and F2 ``(C_T, C_T)``: equation 3."""
    related = []
    for tk_h, tq_h, t_h in zip(split(t @ k, heads), split(t @ q, heads), split(t, heads)):
        related.append(softmax(tk_h @ tq_h.T * scale, dim=1) @ t_h)
    t = t + torch.cat(related, dim=-1)
    return t + (t @ f1).clamp(min=0) @ f2


def projector(
    x: Tensor, t: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor | None, heads: int = 1, scale: float = 1.0
) -> Tensor:
    """X ``(P, C)``, T ``(L, C_T)``, W_Q ``(C, d)``, W_K ``(C_T, d)``, W_V ``(C_T, C)``: equation 4."""
    values = t if w_v is None else t @ w_v
    read = []
    for xq_h, tk_h, v_h in zip(split(x @ w_q, heads), split(t @ w_k, heads), split(values, heads)):
        read.append(softmax(xq_h @ tk_h.T * scale, dim=1) @ v_h)
    return x + torch.cat(read, dim=-1)


def pixels(x: Tensor) -> Tensor:
    """One map ``(C, H, W)`` as ``(P, C)``."""
    return x.reshape(x.shape[0], -1).T
