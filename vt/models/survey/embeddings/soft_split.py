"""Tokens-to-token embedding: three soft splits with transformers between them (T2T-ViT).

Source: Yuan et al., ICCV 2021, section 3.1. Letters: N batch, P tokens, C input channels, D output channels.
"""

from torch import Tensor, nn

from vt.models.grid import Size, TokenPart, to_map
from vt.ops.attend import attend
from vt.registry import MODELS

SOFT_SPLITS = ((7, 4, 2), (3, 2, 1), (3, 2, 1))  # kernel, stride and padding of each split


class NarrowingTransformer(nn.Module):
    """Single-head block from C to D channels: ``y = V + project(attention(norm(x)))``, ``y + feed_forward(norm(y))``.

    The logits are divided by ``sqrt(C)``, as in the authors' code.

    Args:
        in_channels: C.
        channels: D.
    """

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.scale = in_channels**-0.5
        self.norm, self.feed_norm = nn.LayerNorm(in_channels), nn.LayerNorm(channels)
        self.qkv = nn.Linear(in_channels, 3 * channels, bias=False)
        self.proj = nn.Linear(channels, channels)
        self.feed_forward = nn.Sequential(nn.Linear(channels, channels), nn.GELU(), nn.Linear(channels, channels))

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, D)``."""
        q, k, v = self._project(x)
        x = (v + self.proj(attend(q, k, v, scale=self.scale))).squeeze(1)
        return x + self.feed_forward(self.feed_norm(x))

    def attention(self, x: Tensor, size: Size) -> Tensor:
        """Attention weights ``(N, 1, P, P)``."""
        q, k, _ = self._project(x)
        return (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)

    def _project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return Q, K and V, ``(N, 1, P, D)`` each."""
        return self.qkv(self.norm(x)).unsqueeze(1).chunk(3, dim=-1)


@MODELS.register_module()
class SoftSplit(TokenPart):
    """Soft splits into overlapping windows of 7x7 pixels, 3x3 and 3x3 tokens, each flattened into a token.

    Args:
        in_channels: channels of the image.
        channels: C, channels of the output tokens; a linear layer maps the last split to them.
        token_channels: channels of the tokens between the splits.
    """

    def __init__(self, in_channels: int, channels: int, token_channels: int = 64) -> None:
        super().__init__()
        first, second, third = (kernel**2 for kernel, _, _ in SOFT_SPLITS)
        self.transformers = nn.ModuleList(
            NarrowingTransformer(wide, token_channels) for wide in (first * in_channels, second * token_channels)
        )
        self.project = nn.Linear(third * token_channels, channels)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Image ``(N, in_channels, height, width)`` to tokens ``(N, P, C)`` and the size of their grid."""
        x, size = _split(x, *SOFT_SPLITS[0])
        for transform, split in zip(self.transformers, SOFT_SPLITS[1:]):
            x, size = _split(to_map(transform(x, size), size), *split)
        return self.project(x), size


def _split(x: Tensor, kernel: int, stride: int, padding: int) -> tuple[Tensor, Size]:
    """Unfold a map ``(N, C, H, W)`` into windows ``(N, P, C * kernel^2)``; also return the size of their grid."""
    size = tuple((side + 2 * padding - kernel) // stride + 1 for side in x.shape[2:])
    return nn.functional.unfold(x, kernel, padding=padding, stride=stride).transpose(1, 2), size
