"""The dynamic tokenizer of the paper's first version (arXiv 2006.03677v1).

Letters: N batch, C map channels, H and W map size, P = H * W pixels, L tokens, R new tokens, C_T token channels,
h heads.
"""

import torch
from torch import Tensor

from vt.errors import UserError
from vt.models.checks import require_divisible
from vt.registry import MODELS

from .grouped_linear import GroupedLinear
from .tokenizer import AttentionTokenizer


@MODELS.register_module()
class DynamicTokenizer(AttentionTokenizer):
    """Replace half of the tokens by new ones, computed with queries from the replaced tokens; keep the other half.

    With T_in = [T_a, T_b], where T_a are the first ``R = L // 2`` tokens, in each head:
    ``A = softmax over HW of ((X W_K)(T_a W_Q)^T / sqrt(C / h))``, then ``T = [T_b, A^T (X W_V)]``. The new tokens come
    last, so the next module replaces those that this one keeps.

    W_K and W_V are applied to tokens instead of pixels, as ``T_a W_Q W_K^T`` and ``(A^T X) W_V``: same result, cheaper.
    This needs groups of W_K and W_V that are a multiple of the heads. LeCun initialisation of W_Q and W_K gives the
    logits unit scale.

    Args:
        in_channels: C.
        token_channels: C_T.
        num_tokens: L, at least two.
        num_heads: h.
        groups: channel groups of W_K and W_V; W_Q has one.
        **kwargs: other options of :class:`AttentionTokenizer`: norm_cfg and position_encoder, which apply to the new
            tokens only, scale_logits, value_matrix.

    Raises:
        UserError: fewer than two tokens; ``groups`` does not divide the channels, or ``num_heads`` does not divide
            ``groups``; in the forward pass, another number of tokens than ``num_tokens``.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        num_tokens: int = 16,
        num_heads: int = 16,
        groups: int = 16,
        **kwargs,
    ) -> None:
        options = dict(num_tokens=num_tokens, groups=groups, value_matrix=True) | kwargs
        super().__init__(in_channels, token_channels, num_heads, scale_logits=True, **options)
        require_divisible('DynamicTokenizer', 'groups', groups, 'num_heads', num_heads)
        if num_tokens < 2:  # they would pass unchanged
            raise UserError(
                f'DynamicTokenizer: num_tokens={num_tokens} must be at least 2, as half of them are replaced'
            )
        self.num_pooled = num_tokens // 2
        self.query = GroupedLinear(token_channels, in_channels)
        self.key = GroupedLinear(in_channels, in_channels, groups, pixel_side=True)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        """Return ``T_a W_Q W_K^T``, ``(N, R, C)``."""
        return self.key.transposed(self.query(self.check_number(tokens)[:, : self.num_pooled]))

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Arguments and result as in :class:`Tokenizer`; ``attention`` returns the maps of the R new tokens."""
        renewed = super().forward(x, tokens)
        return torch.cat([self.check_number(tokens)[:, self.num_pooled :], renewed], dim=1)
