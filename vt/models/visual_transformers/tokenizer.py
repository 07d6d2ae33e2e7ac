"""Base classes of the tokenizers, which compute visual tokens from a feature map (paper, section 3.1).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels, h heads.
"""

from torch import Tensor, nn

from vt.errors import UserError
from vt.models.checks import optional_norm, require_positive
from vt.ops import tokenize, tokenize_attention
from vt.ops.maps import merge_heads, split_heads, to_pixels
from vt.registry import MODELS

from .grouped_linear import GroupedLinear


class Tokenizer(nn.Module):
    """Base class: pool the pixels into L vectors and map them to the channels of a token, ``T = pooled W_V``.

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token. If it equals C there is no W_V, unless ``value_matrix`` is set.
        num_tokens: L.
        groups: channel groups of the token-side matrices.
        norm_cfg: normalisation of the tokens, e.g. ``dict(type='LN')``; none by default.
        value_matrix: use W_V also if C_T equals C.

    Attributes:
        in_channels, token_channels, num_tokens: as given.
        num_pooled: number of vectors that :meth:`pool` returns, L; a subclass may set another one.
        value, norm: what :meth:`forward` does with the result of :meth:`pool`, in this order.

    Raises:
        UserError: a number below 1; ``groups`` does not divide the channels of W_V.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        num_tokens: int = 16,
        groups: int = 1,
        norm_cfg: dict | None = None,
        value_matrix: bool = False,
    ) -> None:
        super().__init__()
        require_positive(self, token_channels=token_channels, num_tokens=num_tokens, groups=groups)
        self.in_channels, self.token_channels, self.num_tokens = in_channels, token_channels, num_tokens
        self.num_pooled = num_tokens
        has_value = value_matrix or in_channels != token_channels
        self.value = GroupedLinear(in_channels, token_channels, groups) if has_value else nn.Identity()
        self.norm = optional_norm(norm_cfg, token_channels)

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        """Pool the map into L vectors, ``(N, num_pooled, in_channels)``; subclasses implement it."""
        raise NotImplementedError

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Compute tokens from a map.

        Args:
            x: feature map, ``(N, C, H, W)``.
            tokens: tokens of the previous module, ``(N, L, C_T)``; only used by recurrent and dynamic tokenizers.

        Returns:
            Tokens, ``(N, L, C_T)``.

        Raises:
            UserError: :meth:`pool` gives another shape.
        """
        pooled = self.pool(x, tokens)
        if pooled.shape[1:] != (self.num_pooled, self.in_channels):
            words = f'{type(self).__name__}.pool returns {tuple(pooled.shape)}, not (N, num_pooled, in_channels)'
            raise UserError(f'{words}, here (N, {self.num_pooled}, {self.in_channels})')
        return self.norm(self.value(pooled))


class AttentionTokenizer(Tokenizer):
    """Base class: attention over the pixels with one filter per token, ``T = A^T X``, ``A = softmax over HW of X W_A``.

    Subclasses define the filters. The equations of the paper have tokens of C channels. If C_T differs (256 and 1024 in
    VT-ResNet-18), W_V maps them to C_T: ``T = (A^T X) W_V``. With the defaults and C_T = C this is the equation as
    published; ``num_heads``, ``scale_logits`` and ``position_encoder`` are those of the first version (arXiv
    2006.03677v1).

    Args:
        in_channels: C, channels of the feature map.
        token_channels: C_T, channels of a token.
        num_heads: h, number of slices of the channels with separate attention, each with its slice of the filters.
        scale_logits: divide the logits by the square root of ``C / num_heads``.
        position_encoder: config of a module that adds positions to the tokens, called with ``(tokens, maps)``; none by
            default. With it, the attention weights are materialised.
        **kwargs: other options of :class:`Tokenizer`: num_tokens, groups, norm_cfg, value_matrix.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int,
        num_heads: int = 1,
        scale_logits: bool = False,
        position_encoder: dict | None = None,
        **kwargs,
    ) -> None:
        super().__init__(in_channels, token_channels, **kwargs)
        require_positive(self, num_heads=num_heads)
        scale = (in_channels / num_heads) ** -0.5
        self.num_heads, self.scale = num_heads, scale if scale_logits else 1.0
        widths = dict(token_channels=token_channels, num_heads=num_heads)
        self.position_encoder = MODELS.build(position_encoder, default_args=widths) if position_encoder else None

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        """Return one filter per token, ``(L, C)`` or ``(N, L, C)``; arguments as in the forward pass."""
        raise NotImplementedError

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return tokenize(x, self.filters(x, tokens), self.num_heads, self.scale)

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        if self.position_encoder is None:
            return super().forward(x, tokens)
        maps = self.attention(x, tokens)  # N, h, L, H, W
        pooled = merge_heads(maps.flatten(-2) @ split_heads(to_pixels(x), self.num_heads))  # N, L, C
        return self.norm(self.position_encoder(self.value(pooled), maps))

    def attention(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Attention weights of each token, ``(N, h, L, H, W)``; arguments as in the forward pass."""
        maps = tokenize_attention(x, self.filters(x, tokens), self.num_heads, self.scale)
        return maps.unflatten(-1, x.shape[-2:])

    def check_number(self, tokens: Tensor | None) -> Tensor:
        """Return the tokens of the previous module; raise ``UserError`` unless there are ``num_tokens``."""
        name = type(self).__name__
        if tokens is None:
            raise UserError(f'{name} requires tokens of a previous module: use another tokenizer in the first module')
        if tokens.shape[1] != self.num_tokens:
            raise UserError(f'{name}: num_tokens={self.num_tokens}, but the input has {tokens.shape[1]} tokens')
        return tokens
