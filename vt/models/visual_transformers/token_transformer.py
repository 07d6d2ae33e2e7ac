"""The transformer on the visual tokens (paper, section 3.2).

Letters: N batch, L tokens, C_T token channels, d channels of queries and keys, h heads.
"""

import torch
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.models.checks import optional_norm, require_positive
from vt.ops.maps import heads_in_batch, merge_heads, scaled
from vt.registry import MODELS

from .grouped_linear import GroupedLinear


@MODELS.register_module()
class TokenTransformer(nn.Module):
    """Self-attention and feed-forward on the visual tokens (paper, equation 3).

    ``T' = T + softmax over L of ((T K)(T Q)^T) T`` and ``T_out = T' + ReLU(T' F1) F2``. With the defaults this is the
    equation as published, without scaling of the logits, normalisation or heads; these are options. K and Q are
    ``(C_T, d)``, F1 and F2 ``(C_T, C_T)``.

    The paper gives no initialisation. Without normalisation, training is stable only if the scale of the tokens stays
    constant over depth, since the attention is cubic in it. So the initialisation keeps it within a factor of two:

    - K and Q are ``d^(1/4)`` times smaller than with LeCun initialisation, which gives the logits the scale that a
      division by ``sqrt(d)`` would.
    - Tokens are similar at the start, so attention doubles them. F1 is the identity and F2 minus one half of it, which
      subtracts the added part again where entries are positive.

    Args:
        token_channels: C_T.
        qk_channels: d; ``C_T / 2`` by default, as in the paper.
        num_heads: h; the channels of the tokens are split into h slices.
        groups: channel groups of the four matrices.
        scale_logits: divide the logits by ``sqrt(d / num_heads)``; K and Q are initialised as without it.
        norm_cfg: normalisation before each of the two branches, e.g. ``dict(type='LN')``; none by default.
        drop_path: probability of dropping a branch for a sample (stochastic depth).

    Raises:
        UserError: a number below 1; ``groups`` does not divide the channels.
    """

    def __init__(
        self,
        token_channels: int,
        qk_channels: int | None = None,
        num_heads: int = 1,
        groups: int = 1,
        scale_logits: bool = False,
        norm_cfg: dict | None = None,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        require_positive(self, token_channels=token_channels, num_heads=num_heads, groups=groups)
        d = token_channels // 2 if qk_channels is None else qk_channels
        self.num_heads = num_heads
        self.scale = (d / num_heads) ** -0.5 if scale_logits else 1.0
        self.norm1 = optional_norm(norm_cfg, token_channels)
        self.key = GroupedLinear(token_channels, d, groups, d**-0.25)
        self.query = GroupedLinear(token_channels, d, groups, d**-0.25)
        self.norm2 = optional_norm(norm_cfg, token_channels)
        self.feed_forward1 = GroupedLinear(token_channels, token_channels, groups)
        self.feed_forward2 = GroupedLinear(token_channels, token_channels, groups)
        self.feed_forward1.set_identity(1.0)
        self.feed_forward2.set_identity(-0.5)
        self.relu = nn.ReLU()
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """``(N, L, C_T)`` to ``(N, L, C_T)``."""
        normed = self.norm1(tokens)
        related = torch.bmm(self._attention(normed), heads_in_batch(normed, self.num_heads))  # N h, L, C_T/h
        if self.num_heads > 1:
            related = merge_heads(related.unflatten(0, (-1, self.num_heads)))  # N, L, C_T
        tokens = tokens + self.drop_path(related)
        hidden = self.relu(self.feed_forward1(self.norm2(tokens)))
        return tokens + self.drop_path(self.feed_forward2(hidden))

    def attention(self, tokens: Tensor) -> Tensor:
        """Attention weights ``(N, h, L, L)``; the last axis sums to one."""
        return self._attention(self.norm1(tokens)).unflatten(0, (-1, self.num_heads))

    def _attention(self, tokens: Tensor) -> Tensor:
        keys = heads_in_batch(self.key(tokens), self.num_heads)  # N h, L, d/h
        queries = heads_in_batch(scaled(self.query(tokens), self.scale), self.num_heads)  # N h, L, d/h
        # As in the paper, (T K)(T Q)^T: the rows, each of which sums to one, belong to K.
        # dtype avoids two casts under autocast, which computes a softmax in float32.
        return torch.bmm(keys, queries.mT).softmax(dim=-1, dtype=tokens.dtype)  # N h, L, L
