"""Multi-head attention: as in ViT and DeiT, with an additive mask, and with the class token as the only query.

Letters: N batch, K class tokens, P tokens of the grid, C channels, D inner channels, h heads, d = D / h, T queries,
S keys, W_n windows of one image (1 without windows), W = N * W_n. Without windows T = S = K + P.
"""

from torch import Tensor, nn

from vt.models.grid import Size, TokenPart
from vt.ops.attend import attend
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS


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
        self.num_heads, self.scale = num_heads, (self.inner_channels / num_heads) ** -0.5
        self.add_parts(channels, size, **parts)
        self.proj = nn.Linear(self.inner_channels, channels) if project else nn.Identity()
        self.proj_dropout = nn.Dropout(proj_dropout)

    def add_parts(self, channels: int, size: Size, qkv_bias: bool = True) -> None:
        """Create the modules before the output projection; a subclass may create others.

        ``qkv_bias`` adds biases to the projections to Q, K and V.
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


@MODELS.register_module()
class ClassAttention(Attention):
    """Compute ``softmax(q K^T / sqrt(d)) V`` and project it; q comes from the class token, K and V from all tokens.

    Source: CaiT, section 3. The input is ``(N, 1 + P, C)``, class token first; the output is the update of the class
    token, ``(N, 1, C)``; the attention weights are ``(N, h, 1, 1 + P)``.

    Args:
        channels: C.
        num_heads: h.
        size, inner_channels, project, proj_dropout, qkv_bias: options of :class:`Attention`, with the same defaults.
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
