"""Progressive sampling of tokens at learned positions (PS-ViT; Yue et al., ICCV 2021).

Letters: N batch, H and W size of a map, P points, C channels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import grid_sample, linear

from vt.models.grid import Size, TokenPart, to_tokens
from vt.models.survey.blocks.block import Block
from vt.registry import MODELS

from .bottleneck import Bottleneck


@MODELS.register_module()
class ProgressiveSampling(TokenPart):
    """Sample a feature map at points whose positions are refined in several rounds (section 3.2).

    Each round samples the map bilinearly at the points (zero outside), adds the points' position embedding and the
    tokens of the previous round, and applies a block. A linear layer on the tokens predicts the offsets of the points.

    Args:
        in_channels: channels of an image.
        channels: C.
        num_heads: number of heads of the blocks.
        rounds: number of sampling rounds.
        stride: spacing of the initial points, in pixels of the map.
        attention, feed_forward: options of the blocks, as in :class:`vt.models.Block`.
        drop_paths: stochastic depth rate of each round's block; 0 by default.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        num_heads: int,
        rounds: int = 4,
        stride: int = 4,
        attention: dict | None = None,
        feed_forward: dict | None = None,
        drop_paths: Sequence[float] = (),
    ) -> None:
        super().__init__()
        rates = drop_paths or [0.0] * rounds
        self.stem = nn.Sequential(
            ConvModule(in_channels, 64, 7, stride=2, padding=3, norm_cfg=dict(type='BN')),
            nn.MaxPool2d(3, stride=2, padding=1),
            Bottleneck(64, 256, 64),
            Bottleneck(256, channels, 64),
        )
        self.stride = stride
        self.position = nn.Linear(2, channels)
        parts = dict(
            attention=dict(type='vt.Attention') | (attention or {}),
            feed_forward=dict(type='vt.FeedForward') | (feed_forward or {}),
            norm_cfg=dict(type='LN'),
        )
        self.blocks = nn.ModuleList(Block(channels, (0, 0), num_heads, drop_path=rate, **parts) for rate in rates)
        # Plain parameters, since backbones initialise linear layers: with zeros, the points do not move at the start.
        self.moves = nn.Parameter(torch.zeros(rounds - 1, 2, channels))
        self.shifts = nn.Parameter(torch.zeros(rounds - 1, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Image ``(N, in_channels, height, width)`` to tokens ``(N, P, C)`` and the size of the initial grid."""
        x = self.stem(x)
        whole = x.shape[2:]
        size = tuple(-(-side // self.stride) for side in whole)
        points = self._first_points(size, x).expand(x.shape[0], -1, -1)
        sides = points.new_tensor(whole)
        tokens: Any = 0.0
        offsets = torch.zeros_like(points)
        for index, block in enumerate(self.blocks):
            seen = sample(x, points + offsets)
            points = points + offsets.detach()
            tokens = block(seen + self.position(points / sides) + tokens, size)
            if index < len(self.moves):
                offsets = linear(tokens, self.moves[index], self.shifts[index])  # N, P, 2
        return tokens, size

    def _first_points(self, size: Size, x: Tensor) -> Tensor:
        """Rows and columns of the centres of the initial cells, ``(1, P, 2)``."""
        middles = [
            (torch.arange(number, dtype=x.dtype, device=x.device) + 0.5) * (whole / number)
            for number, whole in zip(size, x.shape[2:])
        ]
        return torch.cartesian_prod(*middles)[None]


def sample(x: Tensor, points: Tensor) -> Tensor:
    """Sample a map ``(N, C, H, W)`` at rows and columns ``(N, P, 2)``, zero outside; return ``(N, P, C)``."""
    locations = (2 * points + 1) / points.new_tensor(x.shape[2:]) - 1  # -1 and 1 are the outer edges of the map
    columns_first = locations.flip(-1).unsqueeze(2)  # N, P, 1, 2
    return to_tokens(grid_sample(x, columns_first, padding_mode='zeros', align_corners=False))
