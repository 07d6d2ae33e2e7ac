"""Sines and cosines of where a token stands.

Letters: N batch, K class tokens, P = H * W places, C channels.
"""

from mmpretrain.models.utils import build_2d_sincos_position_embedding
from torch import Tensor, nn
from torch.nn.functional import pad

from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size


@MODELS.register_module()
class SinusoidalPosition(nn.Module):
    """``x + E`` with nothing to learn: waves over the rows in half of the channels, over the columns in the other.

    The waves are those of Vaswani et al. (2017, section 3.5), lengths from 2 pi to ``2 pi temperature``, of each side
    by itself (MoCo v3, section 4). Class tokens are nowhere: they stay as they are. Another grid has its own waves.

    Args:
        channels: C.
        size: height and width of the grid in training.
        num_class_tokens: K.
        temperature: how much longer the longest wave is than the shortest.

    Raises:
        UserError: C is not divisible by four.
    """

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0, temperature: float = 10000.0) -> None:
        super().__init__()
        require_divisible('SinusoidalPosition', 'channels', channels, 'sines and cosines of two sides', 4)
        self.channels, self.temperature = channels, temperature
        self.size = tuple(size)
        self.register_buffer('vectors', self.of_grid(size), persistent=False)

    def of_grid(self, size: Size) -> Tensor:
        """E of a grid, ``(1, P, C)``."""
        # Its places run down the columns: the sides are told the other way round.
        return build_2d_sincos_position_embedding(tuple(size)[::-1], self.channels, self.temperature)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        vectors = self.vectors if tuple(size) == self.size else self.of_grid(size).to(self.vectors)
        return x + pad(vectors, (0, 0, x.shape[1] - vectors.shape[1], 0))
