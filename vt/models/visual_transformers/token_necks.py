"""Necks of classifiers: the average of the tokens (paper, section 4.1), or a ViT encoder (not in the paper).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels.
"""

from collections.abc import Sequence

import torch
from mmengine.model import BaseModule, ModuleList
from mmpretrain.models.backbones.vision_transformer import TransformerEncoderLayer
from torch import Tensor, nn

from vt.registry import MODELS

from .learned_tokenizers import FilterTokenizer


@MODELS.register_module()
class TokenAverage(nn.Module):
    """Average over the tokens (paper, section 4.1): ``(N, L, C_T)`` to ``(N, C_T)``, for each item of a tuple."""

    def forward(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(tokens.mean(dim=1) for tokens in feats)


@MODELS.register_module()
class TokenEncoder(BaseModule):
    """Tokenize the last map, prepend a class token, apply a transformer encoder and return the class token.

    The encoder is that of ViT: MMPretrain's pre-norm layers with GELU and a final normalisation. Each filter of the
    tokenizer has a learned position embedding. The map may have any size.

    The class token and the embedding are drawn with standard deviation 0.02, the layers like MMPretrain's.

    Args:
        in_channels: C, channels of the last map.
        token_channels: C_T.
        num_tokens: L, number of visual tokens.
        depth: number of encoder layers.
        num_heads: number of heads of the attention.
        feedforward_channels: hidden channels of the feed-forward network.
        dropout: dropout probability, after the position embedding and in both branches of a layer.
        init_cfg: as in mmengine.
    """

    def __init__(
        self,
        in_channels: int,
        token_channels: int = 128,
        num_tokens: int = 8,
        depth: int = 6,
        num_heads: int = 8,
        feedforward_channels: int = 256,
        dropout: float = 0.1,
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        self.tokenizer = FilterTokenizer(in_channels, token_channels, num_tokens=num_tokens)
        self.class_token = nn.Parameter(torch.randn(1, 1, token_channels) * 0.02)
        self.position_embedding = nn.Parameter(torch.randn(1, num_tokens + 1, token_channels) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.layers = ModuleList(
            TransformerEncoderLayer(token_channels, num_heads, feedforward_channels, drop_rate=dropout)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(token_channels)

    def forward(self, feats: Sequence[Tensor]) -> tuple[Tensor]:
        """Compute the feature vector for a linear head.

        Args:
            feats: maps of a backbone; only the last, ``(N, C, H, W)``, is used.

        Returns:
            A tuple with the class token, ``(N, C_T)``.
        """
        tokens = self.tokenizer(feats[-1])  # N, L, C_T
        tokens = torch.cat([self.class_token.expand(tokens.shape[0], -1, -1), tokens], dim=1)  # N, L + 1, C_T
        tokens = self.dropout(tokens + self.position_embedding)
        for layer in self.layers:
            tokens = layer(tokens)
        return (self.norm(tokens[:, 0]),)
