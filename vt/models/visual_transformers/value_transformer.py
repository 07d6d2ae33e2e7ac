"""The transformer of the paper's first version (arXiv 2006.03677v1): a value matrix, and one feed-forward matrix.

Letters: N batch, L tokens, C_T token channels, d channels of queries and keys, h heads.
"""

from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.models.checks import require_positive
from vt.ops.maps import merge_heads, split_heads
from vt.registry import MODELS

from .grouped_linear import GroupedLinear


@MODELS.register_module()
class ValueTransformer(nn.Module):
    """``T' = T + softmax over L of ((T Q)(T K)^T / sqrt(d / h)) (T V)`` in each head, then ``T_out = T' + T' F``.

    The paper gives no initialisation. Q, K and V use LeCun initialisation: tokens of unit scale give logits of unit
    scale. Tokens are similar at the start, so attention doubles their variance; F is ``1/sqrt(2) - 1`` times the
    identity, which restores it, so the scale stays constant over depth.

    Args:
        token_channels: C_T; d is half of it.
        num_heads: h.
        groups: channel groups of Q, K and V.
        drop_path: probability of dropping a branch for a sample (stochastic depth).

    Raises:
        UserError: a number below 1; ``groups`` does not divide the channels.
    """

    def __init__(self, token_channels: int, num_heads: int = 16, groups: int = 8, drop_path: float = 0.0) -> None:
        super().__init__()
        require_positive(self, token_channels=token_channels, num_heads=num_heads, groups=groups)
        d = token_channels // 2
        self.num_heads = num_heads
        self.scale = (d / num_heads) ** -0.5
        self.query = GroupedLinear(token_channels, d, groups)
        self.key = GroupedLinear(token_channels, d, groups)
        self.value = GroupedLinear(token_channels, token_channels, groups)
        self.feed_forward = GroupedLinear(token_channels, token_channels)
        self.feed_forward.set_identity(2**-0.5 - 1)
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """``(N, L, C_T)`` to ``(N, L, C_T)``."""
        values = split_heads(self.value(tokens), self.num_heads)  # N, h, L, C_T/h
        tokens = tokens + self.drop_path(merge_heads(self.attention(tokens) @ values))
        return tokens + self.drop_path(self.feed_forward(tokens))

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention weights ``(N, h, L, L)``; the last axis sums to one."""
        queries = split_heads(self.query(tokens) * self.scale, self.num_heads)  # N, h, L, d/h
        keys = split_heads(self.key(tokens), self.num_heads)  # N, h, L, d/h
        return (queries @ keys.transpose(-2, -1)).softmax(dim=-1)  # N, h, L, L
