"""Sparse attention patterns, local and strided, as attention masks.

Letters: N batch, K class tokens, P = H * W tokens of the grid, h heads.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from vt.models.grid import Size
from vt.registry import MODELS

from .multi_head import MaskedAttention


@MODELS.register_module()
class SparseAttention(MaskedAttention):
    """Attention of each token to its neighbours, to tokens at multiples of a stride, or to both.

    These are the local and strided patterns of the sparse transformer (Child et al., 2019, section 4.2), applied to
    the rows and columns of a grid, without a causal mask. Blocks may alternate between the two, as in the paper, or
    combine them. Class tokens attend to all tokens, and all tokens to them. All logits are computed before the mask
    is applied, so the pattern saves no time.

    Args:
        channels: C.
        num_heads: h.
        size: grid size (H, W) during training, for which the mask is made; others are made when needed.
        near: largest distance in rows and columns of the local pattern; None for no local pattern.
        stride: the strided pattern has the tokens whose distances in rows and columns are multiples of this; None for
            no strided pattern.
        inner_channels, project, proj_dropout, qkv_bias: options of :class:`Attention`, with the same defaults.
    """

    hidden: Tensor

    def add_parts(self, channels: int, size: Size, near: int | None = None, stride: int | None = None, **parts) -> None:
        """Create the mask, and the parts of :class:`Attention`."""
        super().add_parts(channels, size, **parts)
        self.near, self.stride, self.size = near, stride, tuple(size)
        self.register_buffer('hidden', ~self.seen(size), persistent=False)

    def seen(self, size: Size, device: torch.device | None = None) -> Tensor:
        """Whether each token (row) may attend to each other token (column) of a grid, ``(P, P)`` of bool."""
        positions = torch.cartesian_prod(*(torch.arange(side, device=device) for side in size))  # P, 2
        apart = (positions[:, None] - positions).abs()  # P, P, 2
        near = apart <= (-1 if self.near is None else self.near)
        far = apart % self.stride == 0 if self.stride else torch.zeros_like(near)
        return near.all(dim=-1) | far.all(dim=-1)

    def mask(self, q: Tensor, size: Size) -> Tensor:
        hidden = self.hidden if tuple(size) == self.size else ~self.seen(size, q.device)
        num_class_tokens = q.shape[2] - hidden.shape[0]
        hidden = pad(hidden, (num_class_tokens, 0, num_class_tokens, 0))
        return q.new_zeros(1, 1, *hidden.shape).masked_fill(hidden, float('-inf'))  # 1, 1, T, T
