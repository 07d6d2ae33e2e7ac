"""The transformer of the paper's first version (arXiv 2006.03677v1): a value matrix, and one feed-forward matrix.

Letters: N batch, L tokens, C_T token channels, d channels of queries and keys, h heads.
"""

from mmcv.cnn import build_norm_layer
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from ..checks import require_divisible
from ..grouped_linear import GroupedLinear


@MODELS.register_module()
class ValueTransformer(nn.Module):
    """``T' = T + softmax over L of ((T Q)(T K)^T / sqrt(d / h)) (T V)`` in each head, then ``T_out = T' + T' F``.

    The paper gives no initialisation. Q, K and V use LeCun initialisation: tokens of unit scale give logits of unit
    scale. Tokens are similar at the start, so attention doubles their variance; F is ``1/sqrt(2) - 1`` times the
    identity, which restores it, so the scale stays constant over depth.

    Args:
        token_channels: C_T.
        qk_channels: d; ``C_T / 2`` by default.
        num_heads: h.
        groups: channel groups of Q, K and V.
        feed_forward_groups: channel groups of F.
        norm_cfg: normalisation before each of the two branches, e.g. ``dict(type='LN')``; none by default.
        dropout: dropout probability of the output of both branches.
        drop_path: probability of dropping a branch for a sample (stochastic depth).

    Raises:
        UserError: ``num_heads`` or the groups do not divide the channels.
    """

    def __init__(
        self,
        token_channels: int,
        qk_channels: int | None = None,
        num_heads: int = 16,
        groups: int = 8,
        feed_forward_groups: int = 1,
        norm_cfg: dict | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        d = token_channels // 2 if qk_channels is None else qk_channels
        for divisor_name, divisor in (('num_heads', num_heads), ('groups', groups)):
            require_divisible('ValueTransformer', 'token_channels', token_channels, divisor_name, divisor)
            require_divisible('ValueTransformer', 'qk_channels', d, divisor_name, divisor)
        self.num_heads = num_heads
        self.scale = (d // num_heads) ** -0.5
        self.norm1 = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.query = GroupedLinear(token_channels, d, groups)
        self.key = GroupedLinear(token_channels, d, groups)
        self.value = GroupedLinear(token_channels, token_channels, groups)
        self.norm2 = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.feed_forward = GroupedLinear(token_channels, token_channels, feed_forward_groups)
        self.feed_forward.set_identity(2**-0.5 - 1)
        self.dropout = nn.Dropout(dropout)
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """``(N, L, C_T)`` to ``(N, L, C_T)``."""
        tokens = tokens + self.drop_path(self.dropout(self._relate(self.norm1(tokens))))
        return tokens + self.drop_path(self.dropout(self.feed_forward(self.norm2(tokens))))

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention weights ``(N, h, L, L)``; the last axis sums to one."""
        return self._attention(self.norm1(tokens))

    def _attention(self, tokens: Tensor) -> Tensor:
        queries = split_heads(self.query(tokens) * self.scale, self.num_heads)  # N, h, L, d/h
        keys = split_heads(self.key(tokens), self.num_heads)  # N, h, L, d/h
        return (queries @ keys.transpose(-2, -1)).softmax(dim=-1)  # N, h, L, L

    def _relate(self, tokens: Tensor) -> Tensor:
        values = split_heads(self.value(tokens), self.num_heads)  # N, h, L, C_T/h
        return merge_heads(self._attention(tokens) @ values)  # N, L, C_T
