"""Relative position bias: a bias on the attention logits by the offset between two tokens of a window.

Letters: T tokens of a window of h x w, a attention heads.
"""

import math

import torch
from torch import Tensor, nn

from vt.checkpoints.grids import FileGrids
from vt.models.grid import Size, TokenPart
from vt.registry import MODELS

from .absolute import resize_positions


def relative_index(window: tuple[int, int]) -> Tensor:
    """Index of the offset of each pair of tokens in a table of ``(2 h - 1) (2 w - 1)`` offsets, ``(T, T)``."""
    positions = torch.cartesian_prod(*(torch.arange(side) for side in window))  # T, 2
    offsets = positions[:, None] - positions + torch.tensor(window) - 1  # T, T, 2
    return offsets[..., 0] * (2 * window[1] - 1) + offsets[..., 1]


@MODELS.register_module()
class RelativePositionBias(TokenPart):
    """A learned bias per head and offset (Swin, equation 4).

    Args:
        num_heads: a.
        window: height h and width w of a window.
    """

    index: Tensor

    def __init__(self, num_heads: int, window: tuple[int, int]) -> None:
        super().__init__()
        self.window = window
        self.table = nn.Parameter(torch.zeros((2 * window[0] - 1) * (2 * window[1] - 1), num_heads))
        nn.init.trunc_normal_(self.table, std=0.02)
        self.register_buffer('index', relative_index(window), persistent=False)

    def offsets(self, window: tuple[int, int]) -> Tensor:
        """Return the table, ``((2 h - 1) (2 w - 1), a)``, resized if ``window`` differs."""
        return _resize(self.table, self.window, window)

    def forward(self, window: tuple[int, int]) -> Tensor:
        """Return the bias of each pair of tokens of a window, ``(a, T, T)``."""
        index = self.index if tuple(window) == tuple(self.window) else relative_index(window).to(self.index.device)
        return self.offsets(window)[index.flatten()].T.reshape(-1, *index.shape)

    def resized(self, table: Tensor, name: str, grids: FileGrids) -> tuple[Tensor, Size, Size]:
        """Resize the table of a checkpoint bicubically, as in Swin's code; return it, the old and the new window.

        Raises:
            UserError: the window of the checkpoint is not known.
        """
        if name != 'table':
            return table, (), ()  # a weight of a continuous bias, which does not depend on the window
        own = tuple(self.window)
        window = grids.find(own, len(table), lambda window: math.prod(2 * side - 1 for side in window))
        return _resize(table, window, own), window, own


def _resize(table: Tensor, window: Size, to: Size) -> Tensor:
    """Resize the table of a window to another window."""
    if tuple(window) == tuple(to):
        return table
    sizes = (tuple(2 * side - 1 for side in each) for each in (window, to))
    return resize_positions(table[None], *sizes, antialias=False)[0]


@MODELS.register_module()
class ContinuousPositionBias(RelativePositionBias):
    """Continuous bias of log-spaced offsets, for any window: ``16 sigmoid(MLP(offset))`` (Swin v2, section 3.3).

    Args:
        num_heads: a.
        window: height h and width w of a window.
        trained_window: side of the square window that the MLP was trained with, if it differs from ``window``. Offsets
            then keep their coordinates, and larger offsets are extrapolated.
    """

    coordinates: Tensor

    def __init__(self, num_heads: int, window: tuple[int, int], trained_window: int | None = None) -> None:
        nn.Module.__init__(self)
        self.window = window
        self.mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, num_heads, bias=False))
        self.longest = [trained_window or side for side in window]
        self.register_buffer('coordinates', self._coordinates(window), persistent=False)
        self.register_buffer('index', relative_index(window), persistent=False)

    def offsets(self, window: tuple[int, int]) -> Tensor:
        own = tuple(window) == tuple(self.window)
        coordinates = self.coordinates if own else self._coordinates(window).to(self.coordinates)
        return 16 * self.mlp(coordinates).sigmoid()

    def _coordinates(self, window: tuple[int, int]) -> Tensor:
        """Log-spaced coordinates of each offset, from -1 to 1 in the window that the MLP is trained with."""
        sides = [torch.arange(1 - side, side) * 8 / max(most - 1, 1) for side, most in zip(window, self.longest)]
        offsets = torch.cartesian_prod(*sides)  # -8 to 8
        return offsets.sign() * (offsets.abs() + 1).log2() / math.log2(8)
