"""Attention of the class token alone to all tokens.

Letters: N batch, P tokens, C channels, h heads, d = C / h.
"""

from torch import Tensor, nn

from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart


@MODELS.register_module()
class ClassAttention(TokenPart):
    """``softmax(q K^T / sqrt(d)) V``, projected, where q is of the class token and K and V of all (CaiT, section 3).

    Args:
        channels: C.
        num_heads: h.
        qkv_bias: have biases in the projections.
        size: not used; every attention is told it.

    Raises:
        UserError: ``num_heads`` does not divide C.
    """

    num_class_tokens_needed = 1
    updates_class_tokens_alone = True

    def __init__(self, channels: int, num_heads: int, qkv_bias: bool = True, size: Size = (0, 0)) -> None:
        super().__init__()
        require_divisible('ClassAttention', 'channels', channels, 'num_heads', num_heads)
        self.num_heads = num_heads
        self.query = nn.Linear(channels, channels, bias=qkv_bias)
        self.key = nn.Linear(channels, channels, bias=qkv_bias)
        self.value = nn.Linear(channels, channels, bias=qkv_bias)
        self.proj = nn.Linear(channels, channels)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, 1 + P, C)``, the class token first, to what it reads, ``(N, 1, C)``."""
        q, k, v = self._project(x)  # N, h, 1, d; N, h, 1 + P, d
        read = attend(q, k, v)  # N, h, 1, d
        return self.proj(merge_heads(read))  # N, 1, C

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """How much the class token takes from each, ``(N, h, 1, 1 + P)``."""
        q, k, _ = self._project(x)
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)

    def _project(self, x: Tensor) -> list[Tensor]:
        """q, ``(N, h, 1, d)``, K and V, ``(N, h, 1 + P, d)``."""
        parts = self.query(x[:, :1]), self.key(x), self.value(x)  # N, 1, C; N, 1 + P, C
        return [split_heads(part, self.num_heads) for part in parts]
