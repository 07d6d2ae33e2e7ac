"""Attention with a mask: biases, and what keeps tokens apart.

Letters: N batch, h heads, d channels of one, T tokens that attend, S tokens that are attended to, W_n windows of one
image (1 where the grid is not cut), W = N * W_n.
"""

from torch import Tensor

from vt.ops.attend import attend

from ..grid import Size
from .multi_head import Attention


class MaskedAttention(Attention):
    """``softmax(Q K^T / sqrt(d) + B) V``, projected; a subclass gives B."""

    def mask(self, q: Tensor, size: Size) -> Tensor | None:
        """B, ``(W_n, h, T, S)``, or of a shape that expands to it; None for zero, as here."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        """``softmax(Q K^T / sqrt(d) + B) V``, ``(W, h, T, d)``."""
        mask = self.mask(q, size)
        if mask is not None and mask.requires_grad and mask.device.type == 'cpu':
            # PyTorch would materialise the weights anyway, and look for rows that see nothing.
            return self.dropout(add_mask(super().logits(q, k, size), mask).softmax(dim=-1)) @ v
        if mask is not None and mask.shape[0] > 1:
            mask = mask.repeat(len(q) // mask.shape[0], 1, 1, 1)  # W, h, T, S
        return attend(q, k, v, mask, self.dropout.p if self.training else 0.0, scale=self.scale)

    def logits(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        """``Q K^T / sqrt(d) + B``, ``(W, h, T, S)``."""
        return add_mask(super().logits(q, k, size), self.mask(q, size))


def add_mask(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Logits ``(W, h, T, S)`` plus a mask ``(W_n, h, T, S)``."""
    if mask is None:
        return logits
    return (logits.unflatten(0, (-1, mask.shape[0])) + mask).flatten(0, 1)
