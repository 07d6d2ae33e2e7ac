"""PS-ViT: tokens of points that move, round by round (Yue et al., ICCV 2021).

Letters: N batch, H and W size of a map, P points, C channels.
"""

from collections.abc import Sequence

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import grid_sample, linear

from vt.errors import UserError
from vt.registry import MODELS

from ..block import Block
from ..grid import Size, TokenPart, to_tokens
from .bottleneck import Bottleneck


@MODELS.register_module()
class ProgressiveSampling(TokenPart):
    """Points on a map, a block on what is there, and from its tokens where the points go next (section 3.2).

    Round t samples the map at the points, bilinearly, adds their positions and the tokens of the round before, and
    passes the sum through its block; a matrix of these tokens moves the points. Outside of the map there are zeros.

    Args:
        in_channels: of an image.
        channels: C.
        num_heads: of the blocks' attention.
        rounds: how often the map is sampled.
        stride: pixels of the map on each side of a point's cell at the start.
        stem_channels: of the first convolution, and inside of the two bottlenecks behind it.
        middle_channels: between these.
        attention, feed_forward, norm_cfg: of the blocks, as in :class:`vt.models.Block`.
        drop_paths: stochastic depth of each round's block; none by default.

    Raises:
        UserError: another number of ``drop_paths`` than ``rounds``.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        num_heads: int,
        rounds: int = 4,
        stride: int = 4,
        stem_channels: int = 64,
        middle_channels: int = 256,
        attention: dict | None = None,
        feed_forward: dict | None = None,
        norm_cfg: dict | None = None,
        drop_paths: Sequence[float] = (),
    ) -> None:
        super().__init__()
        if len(rates := drop_paths or [0.0] * rounds) != rounds:
            raise UserError(f'ProgressiveSampling: {len(rates)} drop_paths for rounds={rounds}; give one a round')
        self.stem = nn.Sequential(
            ConvModule(in_channels, stem_channels, 7, stride=2, padding=3, norm_cfg=dict(type='BN')),
            nn.MaxPool2d(3, stride=2, padding=1),
            Bottleneck(stem_channels, middle_channels, stem_channels),
            Bottleneck(middle_channels, channels, stem_channels),
        )
        self.stride = stride
        self.position = nn.Linear(2, channels)
        parts = dict(
            attention=dict(type='vt.Attention') | (attention or {}),
            feed_forward=dict(type='vt.FeedForward') | (feed_forward or {}),
            norm_cfg=norm_cfg or dict(type='LN'),
        )
        self.blocks = nn.ModuleList(Block(channels, (0, 0), num_heads, drop_path=rate, **parts) for rate in rates)
        # They start at zero, where matrices are drawn: the points stay.
        self.moves = nn.Parameter(torch.zeros(rounds - 1, 2, channels))
        self.shifts = nn.Parameter(torch.zeros(rounds - 1, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Image ``(N, in_channels, height, width)`` to tokens ``(N, P, C)`` and the size of the points' first grid."""
        x = self.stem(x)
        whole = x.shape[2:]
        size = tuple(-(-side // self.stride) for side in whole)
        points = self._first_points(size, x).expand(x.shape[0], -1, -1)
        sides = points.new_tensor(whole)
        tokens, offsets = 0.0, torch.zeros_like(points)
        for index, block in enumerate(self.blocks):
            seen = sample(x, points + offsets)
            points = points + offsets.detach()
            tokens = block(seen + self.position(points / sides) + tokens, size)
            if index < len(self.moves):
                offsets = linear(tokens, self.moves[index], self.shifts[index])  # N, P, 2
        return tokens, size

    def _first_points(self, size: Size, x: Tensor) -> Tensor:
        """Rows and columns of the cells' middles, ``(1, P, 2)``."""
        middles = [
            (torch.arange(number, dtype=x.dtype, device=x.device) + 0.5) * (whole / number)
            for number, whole in zip(size, x.shape[2:])
        ]
        return torch.cartesian_prod(*middles)[None]


def sample(x: Tensor, points: Tensor) -> Tensor:
    """What a map ``(N, C, H, W)`` is at points ``(N, P, 2)`` of rows and columns, ``(N, P, C)``; zero outside."""
    locations = (2 * points + 1) / points.new_tensor(x.shape[2:]) - 1  # from -1 to 1 between the outer edges of pixels
    columns_first = locations.flip(-1).unsqueeze(2)  # N, P, 1, 2
    return to_tokens(grid_sample(x, columns_first, padding_mode='zeros', align_corners=False))
