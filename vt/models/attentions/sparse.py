"""Attention to near tokens and to far ones on a coarser grid, by an attention mask.

Letters: N batch, K class tokens, P = H * W tokens of the grid, h heads.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from vt.errors import UserError
from vt.registry import MODELS

from ..grid import Size
from .masks import MaskedAttention


@MODELS.register_module()
class SparseAttention(MaskedAttention):
    """Attention of each token to its neighbours, to every so many-th row and column, or to both.

    The local and strided patterns of the sparse transformer (Child et al., 2019, section 4.2) on a grid: rows and
    columns each are one of its sequences, and nothing is hidden for being later. The two may take turns over the
    blocks, as there, or be one pattern. Class tokens see all, and all see them. The mask saves nothing by itself: all
    logits are computed.

    Args:
        channels, num_heads, size, others: as in :class:`Attention`.
        **parts: as in :meth:`add_parts`.
    """

    def add_parts(
        self,
        channels: int,
        size: Size,
        near: int | None = None,
        stride: int | None = None,
        bias: dict | None = None,
        **parts,
    ) -> None:
        """Add the mask and the bias.

        Args:
            channels, size: as above.
            near: how many rows and columns away a token is still seen; None for no neighbours.
            stride: tokens are seen whose rows and columns are so many apart, or a multiple of it; None for none.
            bias: config of a bias by offset in the grid, such as :class:`vt.models.RelativePositionBias`.
            **parts: as in :meth:`Attention.add_parts`.

        Raises:
            UserError: no pattern.
        """
        if near is None and stride is None:
            raise UserError('SparseAttention: neither near nor stride; give one of the two, or use vt.Attention')
        if (near or 0) < 0 or (stride is not None and stride < 1):
            raise UserError(f'SparseAttention: near={near} must not be negative, stride={stride} at least 1')
        super().add_parts(channels, size, **parts)
        self.bias = MODELS.build(bias, default_args=dict(num_heads=self.num_heads, window=size)) if bias else None
        self.near, self.stride, self.size = near, stride, tuple(size)
        self.register_buffer('hidden', ~self.seen(size), persistent=False)

    def seen(self, size: Size, device: torch.device | None = None) -> Tensor:
        """Whether a token of a grid, a row, sees another one, a column, ``(P, P)``."""
        positions = torch.cartesian_prod(*(torch.arange(side, device=device) for side in size))  # P, 2
        apart = (positions[:, None] - positions).abs()  # P, P, 2
        near = apart <= (-1 if self.near is None else self.near)
        far = apart % self.stride == 0 if self.stride else torch.zeros_like(near)
        return near.all(dim=-1) | far.all(dim=-1)

    def mask(self, q: Tensor, size: Size) -> Tensor:
        hidden = self.hidden if tuple(size) == self.size else ~self.seen(size, q.device)
        num_class_tokens = q.shape[2] - hidden.shape[0]
        hidden = pad(hidden, (num_class_tokens, 0, num_class_tokens, 0))
        mask = q.new_zeros(1, 1, *hidden.shape).masked_fill(hidden, float('-inf'))  # 1, 1, T, T
        return mask if self.bias is None else mask + self.bias(size)
