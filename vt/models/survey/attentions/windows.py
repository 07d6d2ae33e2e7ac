"""Partition of the grid into windows; attention is computed within each window.

Letters: N batch, H and W size of the grid, W_n windows of T tokens, C channels.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from vt.errors import UserError
from vt.models.grid import Size, TokenPart
from vt.registry import MODELS


@MODELS.register_module()
class Windows(TokenPart):
    """Windows of neighbouring tokens (Swin), stripes (CSWin), or dilated windows (Shuffle Transformer, GG Transformer).

    The grid is padded with zeros to whole windows, so any size works, also after training. As in Swin's code, a grid is
    not shifted if a window is as long as its shorter side; this is decided in each forward pass. A grid with a side
    shorter than a window is padded and shifted as in Swin's code for segmentation.

    Args:
        window: height and width in tokens, or one number for both; None stands for the whole side of the grid.
        dilated: spread the tokens of a window evenly over the grid, instead of taking neighbours.
        shift: rows and columns by which the grid is rolled first; tokens that were not neighbours before the roll are
            masked from each other (Swin, section 3.2).
        size: grid size during training.
        shrink: reduce the window to the longer side of ``size`` where that is smaller (Swin's code, for squares);
            otherwise pad the grid (code of CSWin, HRFormer and Twins).
        centered: pad on all four sides (code of CSWin and HRFormer), instead of below and on the right (Swin's code
            for segmentation).

    Raises:
        UserError: ``shift`` is not less than ``window``.
    """

    def __init__(
        self,
        window: int | tuple[int | None, int | None],
        dilated: bool = False,
        shift: int = 0,
        size: Size = (0, 0),
        shrink: bool = True,
        centered: bool = False,
    ) -> None:
        super().__init__()
        window = (window, window) if isinstance(window, int) or window is None else window
        if shift and not 0 < shift < min(side or 0 for side in window):
            raise UserError(f'Windows: shift={shift} must be less than the sides of window={window}, and at least 0')
        self.window = tuple(min(side, max(size) or side) if side and shrink else side for side in window)
        self.dilated, self.shift, self.size, self.centered = dilated, shift, size, centered
        self.mask: Tensor | None
        self.register_buffer('mask', self.regions(size) if self.is_shifted(size) else None, persistent=False)

    def sides(self, size: Size) -> Size:
        """Height and width of a window on a grid of ``size``."""
        return tuple(side or whole for side, whole in zip(self.window, size))

    def is_shifted(self, size: Size) -> bool:
        """Whether a grid of ``size`` is shifted: no window is as long as its shorter side."""
        return self.shift > 0 and min(self.sides(size)) != min(size)

    def padding(self, size: Size) -> tuple[int, int, int, int]:
        """Padding on the left, on the right, above and below a grid of ``size``."""
        rows, columns = (-whole % side for side, whole in zip(self.sides(size), size))
        above, left = (rows // 2, columns // 2) if self.centered else (0, 0)
        return left, columns - left, above, rows - above

    def partition(self, x: Tensor, size: Size) -> Tensor:
        """Partition the tokens ``(N, P, C)`` into windows ``(N * W_n, T, C)``."""
        padding, x = self.padding(size), x.unflatten(1, size)
        if any(padding):
            x = pad(x, (0, 0, *padding))
        if self.is_shifted(size):
            x = x.roll((-self.shift, -self.shift), dims=(1, 2))
        return self._split(x, self.sides(size))

    def _split(self, x: Tensor, sides: Size) -> Tensor:
        """Split a grid of whole windows ``(N, H, W, C)`` into windows ``(N * W_n, T, C)``."""
        height, width = sides
        if self.dilated:
            x = x.unflatten(2, (width, -1)).unflatten(1, (height, -1)).permute(0, 2, 4, 1, 3, 5)
        else:
            x = x.unflatten(2, (-1, width)).unflatten(1, (-1, height)).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, height * width, x.shape[-1])

    def reverse(self, x: Tensor, size: Size) -> Tensor:
        """Merge windows ``(N * W_n, T, C)`` into the grid's tokens ``(N, P, C)``; the inverse of :meth:`partition`."""
        sides = self.sides(size)
        rows, columns = (-(-whole // side) for side, whole in zip(sides, size))  # of windows
        x = x.reshape(-1, rows, columns, *sides, x.shape[-1])
        x = x.permute(0, 3, 1, 4, 2, 5) if self.dilated else x.permute(0, 1, 3, 2, 4, 5)
        x = x.flatten(3, 4).flatten(1, 2)
        if self.is_shifted(size):
            x = x.roll((self.shift, self.shift), dims=(1, 2))
        left, _, above, _ = self.padding(size)
        return x[:, above : above + size[0], left : left + size[1]].flatten(1, 2)

    def regions(self, size: Size, device: torch.device | None = None) -> Tensor:
        """Mask of shifted windows: 0 for pairs of tokens that may attend, minus infinity for others, (W_n, 1, T, T)."""
        padded = tuple(whole + -whole % side for side, whole in zip(self.sides(size), size))
        # Rows that the roll moved to the other end are a region of their own; so are columns.
        rows, columns = (torch.arange(whole, device=device) < self.shift for whole in padded)
        numbers = (2 * rows[:, None] + columns).roll((-self.shift, -self.shift), dims=(0, 1))
        windows = self._split(numbers[None, ..., None], self.sides(size))[..., 0]  # W_n, T
        apart = windows[:, None, :, None] != windows[:, None, None, :]
        return torch.zeros(apart.shape, device=device).masked_fill(apart, float('-inf'))

    def mask_of(self, size: Size, like: Tensor) -> Tensor | None:
        """Return :meth:`regions` of a grid, on the device of ``like``; None if the grid is not shifted."""
        if not self.is_shifted(size):
            return None
        return self.mask if size == self.size else self.regions(size, like.device).to(like.dtype)

    def extra_repr(self) -> str:
        return f'{self.window}, dilated={self.dilated}, shift={self.shift}'
