"""Attention whose only query is the class token.

Letters: N batch, P tokens of the grid, C channels, h heads, d channels per head.
"""

from torch import Tensor, nn

from vt.ops.maps import split_heads
from vt.registry import MODELS

from ..grid import Size
from .multi_head import Attention


@MODELS.register_module()
class ClassAttention(Attention):
    """Compute ``softmax(q K^T / sqrt(d)) V`` and project it; q comes from the class token, K and V from all tokens.

    Source: CaiT, section 3. The input is ``(N, 1 + P, C)``, class token first; the output is the update of the class
    token, ``(N, 1, C)``; the attention weights are ``(N, h, 1, 1 + P)``. Args: as in :class:`Attention`.
    """

    updates_class_tokens_alone = True

    def add_parts(self, channels: int, size: Size, qkv_bias: bool = True) -> None:
        self.query = nn.Linear(channels, self.inner_channels, bias=qkv_bias)
        self.key = nn.Linear(channels, self.inner_channels, bias=qkv_bias)
        self.value = nn.Linear(channels, self.inner_channels, bias=qkv_bias)

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Return q ``(N, h, 1, d)`` and K and V ``(N, h, 1 + P, d)``."""
        parts = self.query(x[:, :1]), self.key(x), self.value(x)
        return tuple(split_heads(part, self.num_heads) for part in parts)
