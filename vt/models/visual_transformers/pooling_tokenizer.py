"""The pooling-based tokenizer that the paper compares with (section 5.1, table 3).

Letters: N batch, C map channels, H and W map size, L tokens, C_T token channels.
"""

import math

from torch import Tensor
from torch.nn.functional import interpolate

from vt.ops.maps import to_pixels
from vt.registry import MODELS

from .tokenizer import Tokenizer


@MODELS.register_module()
class PoolingTokenizer(Tokenizer):
    """Resize the map bilinearly to L cells, then apply W_V: a token stands for a location, not for similar pixels.

    The grid of cells is the most square one of ``num_tokens`` cells: 4x4 for 16, 4x8 for 32.

    Args:
        in_channels: C.
        token_channels: C_T.
        num_tokens: L.
        **kwargs: other options of :class:`Tokenizer`: groups, norm_cfg, value_matrix.
    """

    def __init__(self, in_channels: int, token_channels: int, num_tokens: int = 16, **kwargs) -> None:
        super().__init__(in_channels, token_channels, num_tokens, **kwargs)
        self.grid = nearest_square(num_tokens)

    def pool(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return to_pixels(interpolate(x, self.grid, mode='bilinear', align_corners=False))  # N, L, C


def nearest_square(cells: int) -> tuple[int, int]:
    """Return rows and columns of the most square grid of ``cells`` cells; rows are not more than columns."""
    rows = max(rows for rows in range(1, math.isqrt(cells) + 1) if cells % rows == 0)
    return rows, cells // rows
