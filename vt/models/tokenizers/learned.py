"""The tokenizers of the published model: learned filters, and filters made from the tokens before.

Letters: N batch, C map channels, L tokens, C_T token channels.
"""

import torch
from torch import Tensor, nn

from vt.registry import MODELS

from ..grouped_linear import GroupedLinear
from .base import AttentionTokenizer


@MODELS.register_module()
class FilterTokenizer(AttentionTokenizer):
    """Learned filters, the same for every image (paper, equation 1).

    The filters start normal with standard deviation ``1 / sqrt(C)``, over the factor of ``scale_logits``: logits of
    unit scale on a map of unit scale, so that tokens differ from the first step and no attention is saturated.

    Args:
        in_channels, token_channels, others: as in :class:`AttentionTokenizer`.
    """

    def __init__(self, in_channels: int, token_channels: int, **kwargs) -> None:
        super().__init__(in_channels, token_channels, **kwargs)
        gain = in_channels**-0.5 / self.scale
        self.weight = nn.Parameter(torch.randn(self.num_tokens, in_channels) * gain)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return self.weight


@MODELS.register_module()
class RecurrentTokenizer(AttentionTokenizer):
    """Filters made from the tokens of the module before (paper, equation 2): ``W_R = T_in W_{T->R}``.

    It makes one token from each token before it. W_{T->R} starts ``sqrt(C)`` times smaller than LeCun's: a filter meets
    C channels of a pixel, so the logits start at unit scale, as the filter tokenizer's do.

    Args:
        in_channels, token_channels, others: as in :class:`AttentionTokenizer`.
    """

    def __init__(self, in_channels: int, token_channels: int, groups: int = 1, **kwargs) -> None:
        super().__init__(in_channels, token_channels, groups=groups, **kwargs)
        gain = in_channels**-0.5 / self.scale
        self.to_filters = GroupedLinear(token_channels, in_channels, groups, gain)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return self.to_filters(self.require_tokens(tokens))
