"""The pooling tokenizer that the paper compares with: cells of the map, whatever they show (section 5.1, table 3)."""

import math

from torch import Tensor
from torch.nn.functional import interpolate

from vt.ops.maps import to_pixels
from vt.registry import MODELS

from .base import Tokenizer


@MODELS.register_module()
class PoolingTokenizer(Tokenizer):
    """Bilinear interpolation of the map to L cells, then W_V: a token is a place, not a group of like pixels.

    The cells form the grid of ``num_tokens`` that is nearest to a square: 4x4 for 16, 4x8 for 32.

    Args:
        in_channels, token_channels, num_tokens, groups, norm_cfg, dropout: as in :class:`Tokenizer`.
    """

    def __init__(self, in_channels: int, token_channels: int, num_tokens: int = 16, **kwargs) -> None:
        super().__init__(in_channels, token_channels, num_tokens, **kwargs)
        self.grid = nearest_square(num_tokens)

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return to_pixels(interpolate(x, self.grid, mode='bilinear', align_corners=False))


def nearest_square(cells: int) -> tuple[int, int]:
    """Rows and columns, the rows as many as divide ``cells`` and don't exceed the columns."""
    rows = max(rows for rows in range(1, math.isqrt(cells) + 1) if cells % rows == 0)
    return rows, cells // rows
