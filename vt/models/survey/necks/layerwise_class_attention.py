"""Class attention over the class tokens of all blocks (CeiT, Yuan et al., ICCV 2021).

Letters: N batch, C channels, M blocks.
"""

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from vt.models.survey.blocks.block import Block
from vt.registry import MODELS


@MODELS.register_module()
class LayerwiseClassAttention(BaseModule):
    """Apply a block to the class tokens of all blocks of a backbone, which updates the last one, and normalise it.

    Args:
        channels: C.
        depth: M.
        num_heads: number of heads of the attention.
    """

    def __init__(self, channels: int, depth: int, num_heads: int) -> None:
        super().__init__(dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0))
        attention, feed_forward = dict(type='vt.ClassAttention'), dict(type='vt.FeedForward')
        self.layers = nn.Parameter(torch.zeros(1, depth, channels))
        self.block = Block(channels, (0, 0), num_heads, attention, feed_forward, norm_cfg=dict(type='LN', eps=1e-6))
        self.norm = nn.LayerNorm(channels, eps=1e-6)

    def forward(self, outs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Replace the last output of the backbone, class tokens ``(N, M, C)``, by the updated one ``(N, C)``."""
        tokens = (outs[-1] + self.layers).flip(1)  # the last one first
        return (*outs[:-1], self.norm(self.block(tokens, (1, tokens.shape[1] - 1))[:, 0]))
