"""The filter-based and the recurrent tokenizer of the published model (paper, section 3.1, equations 1 and 2).

Letters: N batch, C map channels, L tokens, C_T token channels.
"""

import torch
from torch import Tensor, nn

from vt.registry import MODELS

from .grouped_linear import GroupedLinear
from .tokenizer import AttentionTokenizer


@MODELS.register_module()
class FilterTokenizer(AttentionTokenizer):
    """Learned filters, the same for every image (paper, equation 1); the parameter ``weight`` is W_A, transposed.

    The filters are drawn with standard deviation ``1 / sqrt(C)``, divided by the factor of ``scale_logits``. A map of
    unit scale then gives logits of unit scale: the softmax is not saturated, and the tokens are similar, not equal.

    Args:
        in_channels: C.
        token_channels: C_T.
        **kwargs: other options of :class:`AttentionTokenizer`, such as num_tokens (L), groups, norm_cfg, num_heads.
    """

    def __init__(self, in_channels: int, token_channels: int, **kwargs) -> None:
        super().__init__(in_channels, token_channels, **kwargs)
        gain = in_channels**-0.5 / self.scale
        self.weight = nn.Parameter(torch.randn(self.num_tokens, in_channels) * gain)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return self.weight  # L, C


@MODELS.register_module()
class RecurrentTokenizer(AttentionTokenizer):
    """Filters computed from the tokens of the previous module (paper, equation 2).

    ``W_R = T_in W_{T->R}``, then ``A = softmax over HW of (X W_R^T)``. W_{T->R} is ``sqrt(C)`` times smaller than with
    LeCun initialisation, so that the logits, sums over C channels, have unit scale as in :class:`FilterTokenizer`.

    Args:
        in_channels: C.
        token_channels: C_T.
        groups: channel groups of W_{T->R} and W_V.
        **kwargs: other options of :class:`AttentionTokenizer`, such as num_tokens (L), norm_cfg, num_heads.
    """

    def __init__(self, in_channels: int, token_channels: int, groups: int = 1, **kwargs) -> None:
        super().__init__(in_channels, token_channels, groups=groups, **kwargs)
        gain = in_channels**-0.5 / self.scale
        self.to_filters = GroupedLinear(token_channels, in_channels, groups, gain)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return self.to_filters(self.check_number(tokens))  # W_R: N, L, C
