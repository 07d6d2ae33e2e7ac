"""Scaled dot-product attention between tokens.

Letters: N batch, h heads, T queries, S keys, d and d' channels per head of keys and values.
"""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from .precision import trains_in_bfloat16_on_cpu

LARGEST_MAP = 2**18  # T * S; on larger maps PyTorch's function is as fast, and does not store the map


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float | None = None) -> Tensor:
    """Compute ``softmax(Q K^T * scale + mask) V`` by PyTorch's function or, where that is slow, by matrix products.

    PyTorch's function is slow when training in bfloat16 on a CPU: for small attention maps, forward and backward take
    1.2 to 10 times as long as with a materialised map.

    Args:
        q: queries, ``(N, h, T, d)``.
        k: keys, ``(N, h, S, d)``.
        v: values, ``(N, h, S, d')``.
        mask: tensor added to the logits, of a shape that broadcasts to ``(N, h, T, S)``.
        scale: factor on the logits; ``1 / sqrt(d)`` by default.

    Returns:
        The attention output, ``(N, h, T, d')``.
    """
    slow = trains_in_bfloat16_on_cpu(q) and q.requires_grad
    if slow and q.shape[-2] * k.shape[-2] <= LARGEST_MAP:
        return attend_plainly(q, k, v, mask, scale=scale)
    return scaled_dot_product_attention(q, k, v, mask, scale=scale)


def attend_plainly(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float | None = None
) -> Tensor:
    """As :func:`attend`, with the attention map ``(N, h, T, S)`` materialised."""
    logits = q * (q.shape[-1] ** -0.5 if scale is None else scale) @ k.transpose(-2, -1)
    maps = (logits if mask is None else logits + mask).softmax(dim=-1)
    return maps.to(v.dtype) @ v
