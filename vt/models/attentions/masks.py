"""Attention with an additive mask: position biases, and minus infinity for pairs that must not attend.

Letters: N batch, h heads, d channels per head, T queries, S keys, W_n windows of one image (1 without windows),
W = N * W_n.
"""

from torch import Tensor

from vt.ops.attend import attend

from ..grid import Size
from .multi_head import Attention


class MaskedAttention(Attention):
    """Compute ``softmax(Q K^T / sqrt(d) + B) V`` and project it; a subclass defines B in :meth:`mask`."""

    def mask(self, q: Tensor, size: Size) -> Tensor | None:
        """Return B, ``(W_n, h, T, S)`` or a shape that broadcasts to it; None, the default, means zero."""

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        """Return ``softmax(Q K^T / sqrt(d) + B) V``, ``(W, h, T, d)``."""
        mask = self.mask(q, size)
        if mask is not None and mask.requires_grad and mask.device.type == 'cpu':
            # PyTorch would materialise the weights too, and also search for fully masked rows.
            return add_mask(super().logits(q, k, size), mask).softmax(dim=-1) @ v
        if mask is not None and mask.shape[0] > 1:
            mask = mask.repeat(len(q) // mask.shape[0], 1, 1, 1)  # W, h, T, S
        return attend(q, k, v, mask, scale=self.scale)

    def logits(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        """Return ``Q K^T / sqrt(d) + B``, ``(W, h, T, S)``."""
        return add_mask(super().logits(q, k, size), self.mask(q, size))


def add_mask(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Add a mask ``(W_n, h, T, S)`` to logits ``(W, h, T, S)``."""
    if mask is None:
        return logits
    return (logits.unflatten(0, (-1, mask.shape[0])) + mask).flatten(0, 1)
