"""Tokenizers: from the pixels of a feature map to a few visual tokens (paper, section 3.1).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels, h heads.
"""

import torch
from mmcv.cnn import build_norm_layer
from torch import Tensor, nn

from vt.ops import tokenize, tokenize_attention
from vt.registry import MODELS

from .checks import require_divisible
from .grouped_linear import GroupedLinear
from .maps import to_pixels


class Tokenizer(nn.Module):
    """What all tokenizers share: attend over the pixels with one filter a token, then give tokens their width.

    ``A = softmax over HW of (X W_A)``, ``T = (A^T X) W_V``; a subclass says where the filters come from.
    With every option at its default this is the paper's equation.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token. Where it equals C there is no W_V.
        num_tokens: L.
        num_heads: slices of the channels that attend on their own, each with its slice of the filters.
        groups: channel groups of the token-side matrices.
        scale_logits: divide the logits by the square root of ``C / num_heads``.
        norm_cfg: normalisation of the tokens, e.g. ``dict(type='LN')``; none by default.
        dropout: probability to drop an entry of the tokens.

    Raises:
        ValueError: ``num_heads`` or ``groups`` do not divide the channels.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        num_tokens: int = 16,
        num_heads: int = 1,
        groups: int = 1,
        scale_logits: bool = False,
        norm_cfg: dict | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        part = type(self).__name__
        if num_tokens < 1:
            raise ValueError(f'{part}: num_tokens={num_tokens} must be at least 1')
        require_divisible(part, 'in_channels', in_channels, 'num_heads', num_heads)
        require_divisible(part, 'in_channels', in_channels, 'groups', groups)
        require_divisible(part, 'token_channels', token_channels, 'groups', groups)
        self.num_tokens = num_tokens
        self.num_heads = num_heads
        self.scale = (in_channels // num_heads) ** -0.5 if scale_logits else 1.0
        same_width = in_channels == token_channels
        self.value = nn.Identity() if same_width else GroupedLinear(in_channels, token_channels, groups)
        self.norm = build_norm_layer(norm_cfg, token_channels)[1] if norm_cfg else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def filters(self, tokens: Tensor | None) -> Tensor:
        """One filter a token, ``(L, C)`` or ``(N, L, C)``."""
        raise NotImplementedError

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Group the pixels of a map into tokens.

        Args:
            x: feature map, ``(N, C, H, W)``.
            tokens: those of the module before, ``(N, L, C_T)``; a filter tokenizer does not look at them.

        Returns:
            Tokens, ``(N, L, C_T)``.
        """
        pooled = tokenize(to_pixels(x), self.filters(tokens), self.num_heads, self.scale)  # N, L, C
        return self.dropout(self.norm(self.value(pooled)))

    def attention(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Where each token looks, ``(N, h, L, H, W)``, for the same arguments as the forward pass."""
        maps = tokenize_attention(to_pixels(x), self.filters(tokens), self.num_heads, self.scale)
        return maps.unflatten(-1, x.shape[-2:])


@MODELS.register_module()
class FilterTokenizer(Tokenizer):
    """Learned filters, the same for every image (paper, equation 1).

    The filters start normal with standard deviation ``1 / sqrt(C)``: logits of unit scale on a map of unit scale,
    so that tokens differ from the first step and no attention is saturated.

    Args:
        in_channels, token_channels, others: as in :class:`Tokenizer`.
    """

    def __init__(self, in_channels: int, token_channels: int, **kwargs) -> None:
        super().__init__(in_channels, token_channels, **kwargs)
        self.weight = nn.Parameter(torch.randn(self.num_tokens, in_channels) * in_channels**-0.5)

    def filters(self, tokens: Tensor | None) -> Tensor:
        return self.weight


@MODELS.register_module()
class RecurrentTokenizer(Tokenizer):
    """Filters made from the tokens of the module before (paper, equation 2): ``W_R = T_in W_{T->R}``.

    It makes one token from each token before it. W_{T->R} starts ``sqrt(C)`` times smaller than LeCun's: a filter meets
    C channels of a pixel, so the logits start at unit scale, as the filter tokenizer's do.

    Args:
        in_channels, token_channels, others: as in :class:`Tokenizer`.
    """

    def __init__(self, in_channels: int, token_channels: int, groups: int = 1, **kwargs) -> None:
        super().__init__(in_channels, token_channels, groups=groups, **kwargs)
        self.to_filters = GroupedLinear(token_channels, in_channels, groups, gain=in_channels**-0.5)

    def filters(self, tokens: Tensor | None) -> Tensor:
        if tokens is None:
            raise ValueError('RecurrentTokenizer needs the tokens of a module before it: begin with a FilterTokenizer')
        if tokens.shape[1] != self.num_tokens:
            raise ValueError(f'RecurrentTokenizer: num_tokens={self.num_tokens}, but {tokens.shape[1]} tokens came in')
        return self.to_filters(tokens)
