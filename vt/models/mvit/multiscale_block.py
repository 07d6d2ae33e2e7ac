"""A block that can downsample its grid and widen its channels.

Source: Fan et al., Multiscale Vision Transformers, ICCV 2021, section 3.2. Letters: N batch, K class tokens, P and P'
tokens of the input and output grid, C channels.
"""

from torch import Tensor, cat, nn

from vt.errors import UserError
from vt.models.checks import build_part
from vt.models.grid import Size, TokenPart, split_class_tokens, to_map, to_tokens
from vt.models.survey.blocks.block import Branch
from vt.registry import MODELS

from .token_pooling import TokenPooling

SKIPS = ('normalised', 'raw', 'none')
HALVES = ('feed_forward', 'attention')


@MODELS.register_module()
class MultiscaleBlock(TokenPart):
    """Multiscale block: ``X' = P(X) + attention(norm(X))``, then ``X' + feed_forward(norm(X'))``.

    P is max pooling with the stride of the attention's queries. The skip connection of the branch that widens the
    channels has a linear layer.

    Args:
        channels: C.
        size: grid size during training.
        num_heads: number of heads of the attention.
        attention: config of an attention that pools its queries, :class:`vt.models.PoolingAttention`.
        feed_forward: config of the feed-forward.
        out_channels: channels of the output; C by default.
        grow_in: branch that widens the channels, ``'feed_forward'`` (MViT) or ``'attention'`` (MViTv2).
        skip: input of the skip connection where channels are widened (table A.1): ``'normalised'``, ``'raw'`` (not
            normalised) or ``'none'`` (no skip connection).
        **branch: options of :class:`vt.models.survey.blocks.block.Branch`.

    Raises:
        UserError: an unknown ``grow_in`` or ``skip``.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        num_heads: int,
        attention: dict,
        feed_forward: dict,
        out_channels: int | None = None,
        grow_in: str = 'feed_forward',
        skip: str = 'normalised',
        **branch,
    ) -> None:
        super().__init__()
        for name, value, known in (('grow_in', grow_in, HALVES), ('skip', skip, SKIPS)):
            if value not in known:
                raise UserError(f'MultiscaleBlock: {name}={value!r} is not one of {", ".join(known)}')
        self.out_channels = out_channels or channels
        inner = self.out_channels if grow_in == 'attention' else channels
        attend = build_part(attention, channels=channels, num_heads=num_heads, size=size, out_channels=inner)
        feed = build_part(feed_forward, channels=inner, out_channels=self.out_channels)
        self.attention = Branch(attend, channels, **branch)
        self.feed_forward = Branch(feed, inner, **branch)
        self.pool_skip = TokenPooling(attend.pool_query.stride, 's+1', 'max')
        grows = self.out_channels != channels
        self.grows = dict(attention=grows and grow_in == 'attention', feed_forward=grows and grow_in == 'feed_forward')
        self.skip = skip
        self.project = nn.Linear(channels, self.out_channels) if grows and skip != 'none' else None

    def out_size(self, size: Size) -> Size:
        """Size of the output grid."""
        return self.attention.part.out_size(size)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P', out_channels)``."""
        passed, added = self._half('attention', x, size)
        x = added if passed is None else self._pool_skip(passed, size) + added
        passed, added = self._half('feed_forward', x, self.out_size(size))
        return added if passed is None else passed + added

    def _pool_skip(self, x: Tensor, size: Size) -> Tensor:
        """Pool the skip connection and crop it to the grid of the queries (even kernels drop the last of odd sides)."""
        pooled, own, wanted = self.pool_skip(x, size), self.pool_skip.out_size(size), self.out_size(size)
        if own == wanted:
            return pooled
        classes, tokens = split_class_tokens(pooled, own)
        cropped = to_map(tokens, own)[(..., *(slice(side) for side in wanted))]
        return cat([classes, to_tokens(cropped)], dim=1)

    def _half(self, name: str, x: Tensor, size: Size) -> tuple[Tensor | None, Tensor]:
        """Return the skip connection of a branch, None for none, and the output of the branch."""
        half = getattr(self, name)
        normed = half.norm(x)
        added = half.residual_branch(normed, size)
        if not self.grows[name]:
            return x, added
        return self.project(normed if self.skip == 'normalised' else x) if self.project is not None else None, added
