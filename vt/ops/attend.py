"""Scaled dot-product attention of tokens to tokens.

Letters: N batch, h heads, T tokens that attend, S tokens that are attended to, d and d' channels of a head.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .precision import trains_in_bfloat16_on_cpu

LARGEST_MAP = 2**18  # T * S; on larger maps PyTorch's own function is as fast, and stores none


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, *, scale: float | None = None
) -> Tensor:
    """``softmax(Q K^T * scale + mask) V``, by PyTorch's own function or, where that is slow, as written.

    It is slow in training in bfloat16 on a CPU: forward and backward take 1.2 to 10 times as long as by small maps that
    are materialised.

    Args:
        q: queries, ``(N, h, T, d)``.
        k: keys, ``(N, h, S, d)``.
        v: values, ``(N, h, S, d')``.
        mask: what is added to the logits, of a shape that expands to ``(N, h, T, S)``.
        dropout: probability to drop an entry of the map.
        scale: of the logits; ``1 / sqrt(d)`` by default.

    Returns:
        ``(N, h, T, d')``.
    """
    slow = trains_in_bfloat16_on_cpu(q) and q.requires_grad
    if slow and q.shape[-2] * k.shape[-2] <= LARGEST_MAP:
        return attend_plainly(q, k, v, mask, dropout, scale=scale)
    return scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)


def attend_plainly(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, *, scale: float | None = None
) -> Tensor:
    """As :func:`attend`, with the map ``(N, h, T, S)`` materialised."""
    logits = q * (q.shape[-1] ** -0.5 if scale is None else scale) @ k.transpose(-2, -1)
    maps = (logits if mask is None else logits + mask).softmax(dim=-1)
    return torch.dropout(maps.to(v.dtype), dropout, train=True) @ v
