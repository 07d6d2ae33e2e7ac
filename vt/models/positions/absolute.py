"""Vectors that are added to tokens, one for each position: learned ones, or sines and cosines.

Letters: N batch, K class tokens, P positions of the grid, C channels.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.checkpoints.grids import FileGrids
from vt.errors import UserError
from vt.registry import MODELS

from ..checks import require_divisible
from ..grid import Size, TokenPart, split_class_tokens, to_map, to_tokens

RESIZES = ('bicubic', 'bilinear')


@MODELS.register_module()
class AbsolutePosition(TokenPart):
    """``x + E``: a vector for each position and class token; for another grid the positions' are resized.

    Args:
        channels: C.
        size: of the grid in training, ``(H, W)`` or ``(T, H, W)``.
        num_class_tokens: K.
        resize: of positions in images, ``'bicubic'`` (code of CeiT, LocalViT and T2T), with antialiasing where a
            side has fewer positions than in training, or ``'bilinear'`` (PVT's code); those of videos are resized
            linearly. timm's default has antialiasing everywhere, which is another kernel.

    Raises:
        UserError: an unknown ``resize``.
    """

    vectors: Tensor

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0, resize: str = 'bicubic') -> None:
        super().__init__()
        self.size = tuple(size)
        self.resize = resize
        if resize not in RESIZES:
            raise UserError(f'AbsolutePosition: resize={resize!r} is not one of {", ".join(RESIZES)}')
        self.set_vectors(channels, num_class_tokens)

    def set_vectors(self, channels: int, num_class_tokens: int) -> None:
        """The vectors of the grid in training, ``(1, K + P, C)``: drawn."""
        self.vectors = nn.Parameter(torch.zeros(1, num_class_tokens + math.prod(self.size), channels))
        nn.init.trunc_normal_(self.vectors, std=0.02)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        return x + resize_positions(self.vectors, self.size, size, self.resize)

    def resized(self, vectors: Tensor, name: str, grids: FileGrids) -> tuple[Tensor, Size, Size]:
        """Vectors ``(1, K + P', C)`` of a file's grid for this one; from which grid and to which.

        Raises:
            UserError: the file's grid is not known.
        """
        vectors = vectors.reshape(1, -1, vectors.shape[-1])
        size = grids.find(self.size, vectors.shape[1] - (self.vectors.shape[1] - math.prod(self.size)))
        return resize_positions(vectors, size, self.size, self.resize), size, self.size


@MODELS.register_module()
class SinusoidalPosition(AbsolutePosition):
    """``x + E`` with nothing to learn: waves over the numbers of the tokens, class tokens first, row by row.

    Sines in the even channels, cosines in the odd ones (Vaswani et al., 2017, section 3.5; T2T-ViT).

    Args: as in :class:`AbsolutePosition`.

    Raises:
        UserError: C is odd.
    """

    def set_vectors(self, channels: int, num_class_tokens: int) -> None:
        require_divisible('SinusoidalPosition', 'channels', channels, 'sines and cosines', 2)
        numbers = torch.arange(num_class_tokens + math.prod(self.size), dtype=torch.float64)
        lengths = 10000 ** (torch.arange(0, channels, 2, dtype=torch.float64) / channels)
        angles = numbers[:, None] / lengths
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # K + P, C
        self.register_buffer('vectors', waves[None].to(torch.get_default_dtype()), persistent=False)


def resize_positions(vectors: Tensor, size: Size, to: Size, resize: str = 'bicubic') -> Tensor:
    """Vectors ``(1, K + P, C)`` of one grid for another one; class tokens keep theirs."""
    if tuple(size) == tuple(to):
        return vectors
    classes, positions = split_class_tokens(vectors, size)
    # With antialiasing, the cubic kernel is another one, where nothing is to be smoothed, too.
    smooth = resize == 'bicubic' and len(size) == 2 and any(new < old for new, old in zip(to, size))
    mode = resize if len(size) == 2 else 'trilinear'
    positions = interpolate(to_map(positions, size), tuple(to), mode=mode, align_corners=False, antialias=smooth)
    return torch.cat([classes, to_tokens(positions)], dim=1)
