"""The grid cut into windows: tokens of one window attend to each other alone.

Letters: N batch, H and W size of the grid, W_n windows of T tokens, C channels.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from vt.errors import UserError
from vt.registry import MODELS

from ..grid import Size, TokenPart


@MODELS.register_module()
class Windows(TokenPart):
    """Windows of neighbouring tokens (Swin), stripes (CSWin), or dilated ones, all over the grid (Shuffle, GG).

    Args:
        window: height and width in tokens, one number for both; None is the grid's whole side, and so is a longer one.
        dilated: a window's tokens stand as far apart as the grid allows, instead of side by side.
        shift: rows and columns by which the grid is rolled first. Tokens that were no neighbours before don't see each
            other (Swin, section 3.2).
        size: of the grid in training; others are padded with zeros to whole windows.

    Raises:
        UserError: the window does not divide ``size``; a window without tokens; a shift of the whole grid or more.
    """

    takes_class_tokens = False

    def __init__(
        self, window: int | tuple[int | None, int | None], dilated: bool = False, shift: int = 0, size: Size = (0, 0)
    ) -> None:
        super().__init__()
        window = (window, window) if isinstance(window, int) or window is None else window
        if any(side is not None and side < 1 for side in window):
            raise UserError(f'Windows: window={window} must be at least 1, or None for the whole side')
        self.window = tuple(min(side or whole, whole or side or 0) for side, whole in zip(window, size))
        self.whole = tuple(side is None for side in window)
        if any(side and whole % side for side, whole in zip(self.window, size)):
            raise UserError(f'Windows: window={self.window} does not divide the grid of {size[0]}x{size[1]} tokens')
        self.dilated = dilated
        # Along a side of the grid that is one window there is nothing to shift.
        self.shift = tuple(0 if side == whole else shift for side, whole in zip(self.window, size))
        if any(not 0 <= rows < (whole or math.inf) for rows, whole in zip(self.shift, size)):
            raise UserError(f'Windows: shift={shift} must be less than the grid of {size[0]}x{size[1]}, not negative')
        self.size = size
        self.mask: Tensor | None
        self.register_buffer('mask', None, persistent=False)
        if any(self.shift):
            self.mask = self.regions(size)

    def sides(self, size: Size) -> Size:
        """Height and width of a window on a grid of this size."""
        return tuple(side if is_whole else own for own, side, is_whole in zip(self.window, size, self.whole))

    def partition(self, x: Tensor, size: Size) -> Tensor:
        """The grid's tokens ``(N, P, C)`` as windows, ``(N * W_n, T, C)``."""
        (height, width), (rows, columns) = self.sides(size), size
        x = x.unflatten(1, size)
        if rows % height or columns % width:
            x = pad(x, (0, 0, 0, -columns % width, 0, -rows % height))
        if any(self.shift):
            x = x.roll([-rows for rows in self.shift], dims=(1, 2))
        if self.dilated:
            x = x.unflatten(2, (width, -1)).unflatten(1, (height, -1)).permute(0, 2, 4, 1, 3, 5)
        else:
            x = x.unflatten(2, (-1, width)).unflatten(1, (-1, height)).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, height * width, x.shape[-1])

    def reverse(self, x: Tensor, size: Size) -> Tensor:
        """Windows ``(N * W_n, T, C)`` back to the grid's tokens ``(N, P, C)``."""
        sides = self.sides(size)
        rows, columns = (-(-whole // side) for whole, side in zip(size, sides))  # of windows
        x = x.reshape(-1, rows, columns, *sides, x.shape[-1])
        x = x.permute(0, 3, 1, 4, 2, 5) if self.dilated else x.permute(0, 1, 3, 2, 4, 5)
        x = x.flatten(3, 4).flatten(1, 2)
        if any(self.shift):
            x = x.roll(self.shift, dims=(1, 2))
        return x[:, : size[0], : size[1]].flatten(1, 2)

    def regions(self, size: Size) -> Tensor:
        """For a shift: 0 where two tokens of a window may see each other, minus infinity elsewhere, (W_n, 1, T, T)."""
        sides = self.sides(size)
        padded = [whole + -whole % side for side, whole in zip(sides, size)]
        # A rolled row is still beside the one before it, unless it came round from the other end.
        device = None if self.mask is None else self.mask.device
        rows, columns = (torch.arange(whole, device=device) < shift for whole, shift in zip(padded, self.shift))
        labels = (2 * rows[:, None] + columns).flatten()
        windows = self.partition(labels[None, :, None], tuple(padded))[..., 0]  # W_n, T
        apart = windows[:, None, :, None] != windows[:, None, None, :]
        return torch.zeros(apart.shape, device=device).masked_fill(apart, float('-inf'))

    def mask_of(self, size: Size) -> Tensor | None:
        """:meth:`regions` of a grid, None where all tokens of a window see each other."""
        if not any(self.shift) or size == self.size:
            return self.mask
        return self.regions(size).to(self.mask)

    def extra_repr(self) -> str:
        return f'{self.window}, dilated={self.dilated}, shift={self.shift}'
