"""Multi-head self-attention, as in ViT and DeiT.

Letters: N batch, K class tokens, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, T queries,
S keys; here T = S = K + P.
"""

from torch import Tensor, nn

from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart


@MODELS.register_module()
class Attention(TokenPart):
    """Multi-head self-attention: ``softmax(Q K^T / sqrt(d)) V``, projected (Vaswani et al., 2017, section 3.2).

    Subclasses replace single steps: the projections, the mask, the logits or the output.

    Args:
        channels: C.
        num_heads: h.
        size: grid size during training; not used by this class.
        inner_channels: D; C by default.
        project: apply the output projection, D to C.
        proj_dropout: dropout probability of the output.
        **parts: options of :meth:`add_parts`.

    Raises:
        UserError: ``num_heads`` does not divide D.
    """

    def __init__(
        self,
        channels: int,
        num_heads: int,
        size: Size = (0, 0),
        inner_channels: int | None = None,
        project: bool = True,
        proj_dropout: float = 0.0,
        **parts,
    ) -> None:
        super().__init__()
        self.inner_channels = inner_channels or channels
        require_divisible(type(self).__name__, 'channels', self.inner_channels, 'num_heads', num_heads)
        self.num_heads, self.scale = num_heads, (self.inner_channels // num_heads) ** -0.5
        self.add_parts(channels, size, **parts)
        self.proj = nn.Linear(self.inner_channels, channels) if project else nn.Identity()
        self.proj_dropout = nn.Dropout(proj_dropout)

    def add_parts(self, channels: int, size: Size, qkv_bias: bool = True) -> None:
        """Create the modules before the output projection; a subclass may create others.

        Args:
            qkv_bias: add biases to the projections to Q, K and V.
        """
        self.qkv = nn.Linear(channels, 3 * self.inner_channels, bias=qkv_bias)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        q, k, v = self.project(x, size)  # N, h, T, d; N, h, S, d
        x = self.gather(merge_heads(self.read(q, k, v, size)), v, size)  # N, T, D
        return self.proj_dropout(self.proj(x))  # N, T, C

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """Attention weights ``(N, h, T, S)``; same arguments as the forward pass."""
        q, k, _ = self.project(x, size)
        return self.weights(q, k, size)

    def project(self, x: Tensor, size: Size) -> tuple[Tensor, ...]:
        """Return Q ``(N, h, T, d)`` and K and V ``(N, h, S, d)``."""
        return tuple(split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))

    def read(self, q: Tensor, k: Tensor, v: Tensor, size: Size) -> Tensor:
        """Return ``softmax(Q K^T / sqrt(d)) V``, ``(N, h, T, d)``."""
        return attend(q, k, v, scale=self.scale)

    def gather(self, read: Tensor, v: Tensor, size: Size) -> Tensor:
        """Postprocess the attention output ``(N, T, D)``; a subclass may add to it or reorder the tokens."""
        return read

    def weights(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        """Return ``softmax(Q K^T / sqrt(d))``, ``(N, h, T, S)``."""
        return self.logits(q, k, size).softmax(dim=-1)

    def logits(self, q: Tensor, k: Tensor, size: Size) -> Tensor:
        """Return ``Q K^T / sqrt(d)``, ``(N, h, T, S)``."""
        return q * self.scale @ k.transpose(-2, -1)
