"""A block of a vision transformer: attention and feed-forward, each with a residual connection.

Letters: N batch, K class tokens, P tokens of the grid, C channels.
"""

from typing import Any

from mmcv.cnn.bricks import DropPath
from mmpretrain.models.utils import LayerScale
from torch import Tensor, cat, nn, zeros

from vt.errors import UserError
from vt.models.checks import build_part, check_tokens, optional_norm
from vt.models.grid import Identity, Size, TokenPart
from vt.ops.maps import scaled
from vt.registry import MODELS


class Branch(nn.Module):
    """A residual branch, without the addition: ``part(norm(x))`` or ``norm(part(x))``, with scale and drop path.

    Args:
        part: module called with ``(x, size)``.
        channels: C.
        norm_cfg: config of the normalisation; None for none.
        post_norm: normalise after the part instead of before it (Swin v2, section 3.2).
        layer_scale: initial value of a learned factor per channel (CaiT, section 2); None for none.
        gain: fixed factor on the output.
        drop_path: probability of dropping the output for a sample (stochastic depth).
    """

    def __init__(
        self,
        part: Any,
        channels: int,
        norm_cfg: dict | None,
        post_norm: bool = False,
        layer_scale: float | None = None,
        gain: float = 1.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        norm = optional_norm(norm_cfg, channels)
        self.norm, self.post_norm = (nn.Identity(), norm) if post_norm else (norm, nn.Identity())
        if post_norm and norm_cfg:
            nn.init.zeros_(norm.weight)  # the block is the identity at the start
        self.part = part
        self.scale: nn.Module = nn.Identity() if layer_scale is None else LayerScale(channels, layer_scale)
        self.gain = gain
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        return self.residual_branch(self.norm(x), size)

    def residual_branch(self, x: Tensor, size: Size) -> Tensor:
        """Compute the branch for an input that is already normalised."""
        return self.drop_path(scaled(self.scale(self.post_norm(self.part(x, size))), self.gain))


class Residual(Branch):
    """``x + branch(x)``."""

    def forward(self, x: Tensor, size: Size) -> Tensor:
        return x + super().forward(x, size)


class ReZero(nn.Module):
    """``alpha x`` with one learned alpha, initialised to zero, so the block starts as identity (ReZero, equation 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x


@MODELS.register_module()
class Block(TokenPart):
    """A transformer block: ``x + attention(norm(x))``, then ``x + feed_forward(norm(x))``.

    If the attention updates the class token only, the block changes no other token (CaiT, section 3).

    Args:
        channels: C.
        size: grid size during training.
        num_heads: number of heads of the attention.
        attention, feed_forward: configs of the parts.
        between: config of a residual part between the two, without drop path; none by default.
        feed_forward_branch: options of :class:`Branch` for the feed-forward, which override ``branch``.
        rezero: scale both branches by one learned factor, initialised to zero (:class:`ReZero`).
        **branch: options of :class:`Branch` for all branches.

    Raises:
        UserError: ``rezero`` and ``layer_scale`` are both set; ``between`` is set for an attention that updates the
            class token only; a part changes the shape of the tokens.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        num_heads: int,
        attention: dict,
        feed_forward: dict,
        between: dict | None = None,
        feed_forward_branch: dict | None = None,
        rezero: bool = False,
        **branch,
    ) -> None:
        super().__init__()
        options = dict(channels=channels) | branch
        attend = build_part(attention, channels=channels, num_heads=num_heads, size=size)
        feed = build_part(feed_forward, channels=channels)
        for part in (attend, feed):
            check_tokens(part, channels, size)
        self.class_token_only = attend.updates_class_tokens_alone
        if between and self.class_token_only:
            raise UserError('Block: between has no effect if only the class token is updated: remove it')
        if rezero and branch.get('layer_scale') is not None:
            raise UserError('Block: rezero and layer_scale are both set; remove one of them')
        self.attention = Branch(attend, **options)
        self.between = Identity()
        if between:
            self.between = Residual(build_part(between, channels=channels), **options | dict(drop_path=0.0))
        self.feed_forward = Branch(feed, **options | (feed_forward_branch or {}))
        if rezero:
            self.attention.scale = self.feed_forward.scale = ReZero()
        self.out_channels = channels

    def out_size(self, size: Size) -> Size:
        """Size of the output grid: the same as the input's."""
        return size

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        if self.class_token_only:
            first = x[:, :1] + self.attention(x, size)  # N, 1, C
            return cat([first + self.feed_forward(first, size), x[:, 1:]], dim=1)  # N, 1 + P, C
        return self.feed(x + self.attention(x, size), size)  # N, K + P, C

    def feed(self, x: Tensor, size: Size) -> Tensor:
        """Apply what follows the attention to the tokens ``(N, K + P, C)``."""
        x = self.between(x, size)
        return x + self.feed_forward(x, size)
