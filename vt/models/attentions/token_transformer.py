"""The transformer on the visual tokens (paper, section 3.2).

Letters: N batch, L tokens, C_T token channels, d query and key width, h heads.
"""

from mmcv.cnn import build_norm_layer
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.ops.maps import merge_heads, scaled, split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grouped_linear import GroupedLinear


@MODELS.register_module()
class TokenTransformer(nn.Module):
    """The paper's equation 3, on tokens alone.

    ``T' = T + softmax over L of ((T K)(T Q)^T) T`` and ``T_out = T' + ReLU(T' F1) F2``. The equations carry no scale,
    no normalisation and no heads; each is an option, and with all of them at their defaults this is the equation.

    The paper gives no initialisation. Without normalisation scale is what decides whether training is stable, since
    attention is cubic in it, so every choice here keeps a token's scale as it is:

    - K and Q start ``d^(1/4)`` times smaller than LeCun's: the first logits are as flat as a division by ``sqrt(d)``
      would make them.
    - Tokens are alike at first, so attention doubles them. F1 starts as the identity and F2 as minus half of it, which
      takes what was added off the positive entries again; a deep stack neither grows nor shrinks.

    Args:
        token_channels: C_T.
        qk_channels: d; ``C_T / 2`` by default, as in the paper.
        num_heads: heads of the attention; tokens are split into as many slices.
        groups: channel groups of the four matrices.
        scale_logits: divide the logits by ``sqrt(d / num_heads)``.
        norm_cfg: normalisation before each of the two branches, e.g. ``dict(type='LN')``; none by default.
        dropout: probability to drop an entry of a branch.
        drop_path: probability to drop a branch of a sample (stochastic depth).

    Raises:
        UserError: ``num_heads`` or ``groups`` do not divide the channels.
    """

    def __init__(
        self,
        token_channels: int,
        qk_channels: int | None = None,
        num_heads: int = 1,
        groups: int = 1,
        scale_logits: bool = False,
        norm_cfg: dict | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        d = token_channels // 2 if qk_channels is None else qk_channels
        for divisor_name, divisor in (('num_heads', num_heads), ('groups', groups)):
            require_divisible('TokenTransformer', 'token_channels', token_channels, divisor_name, divisor)
            require_divisible('TokenTransformer', 'qk_channels', d, divisor_name, divisor)
        self.num_heads = num_heads
        self.scale = (d // num_heads) ** -0.5 if scale_logits else 1.0
        self.norm1 = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.key = GroupedLinear(token_channels, d, groups, d**-0.25)
        self.query = GroupedLinear(token_channels, d, groups, d**-0.25)
        self.norm2 = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.feed_forward1 = GroupedLinear(token_channels, token_channels, groups)
        self.feed_forward2 = GroupedLinear(token_channels, token_channels, groups)
        self.feed_forward1.set_identity(1.0)
        self.feed_forward2.set_identity(-0.5)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """Relate the tokens: ``(N, L, C_T)`` to ``(N, L, C_T)``."""
        tokens = tokens + self.drop_path(self.dropout(self._relate(self.norm1(tokens))))
        hidden = self.relu(self.feed_forward1(self.norm2(tokens)))
        return tokens + self.drop_path(self.dropout(self.feed_forward2(hidden)))

    def attention(self, tokens: Tensor) -> Tensor:
        """How much each token (second to last axis) takes from each (last axis), ``(N, h, L, L)``."""
        return self._attention(self.norm1(tokens))

    def _attention(self, tokens: Tensor) -> Tensor:
        keys = split_heads(self.key(tokens), self.num_heads)  # N, h, L, d/h
        queries = split_heads(scaled(self.query(tokens), self.scale), self.num_heads)  # N, h, L, d/h
        # In the tokens' precision: under autocast a softmax would be cast, and its result cast back for the product.
        return (keys @ queries.transpose(-2, -1)).softmax(dim=-1, dtype=tokens.dtype)  # N, h, L, L

    def _relate(self, tokens: Tensor) -> Tensor:
        return merge_heads(self._attention(tokens) @ split_heads(tokens, self.num_heads))  # N, L, C_T
