"""Learned vectors for the places of the grid.

Letters: N batch, K class tokens, P places, C channels.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.registry import MODELS

from ..grid import Size, TokenPart, split_class_tokens, to_map, to_tokens

RESIZES = dict(bicubic=dict(mode='bicubic', antialias=True), bilinear=dict(mode='bilinear'))


@MODELS.register_module()
class AbsolutePosition(TokenPart):
    """``x + E``: a vector for each place and class token; for another grid the places' are resized.

    Args:
        channels: C.
        size: of the grid in training, ``(H, W)`` or ``(T, H, W)``.
        num_class_tokens: K.
        resize: of the places of images, ``'bicubic'``, smoothed where they become fewer, or ``'bilinear'``, as it is
            (PVT's code); those of videos are resized linearly.
    """

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0, resize: str = 'bicubic') -> None:
        super().__init__()
        self.size = tuple(size)
        self.resize = resize
        if resize not in RESIZES:
            raise UserError(f'AbsolutePosition: resize={resize!r} is not one of {", ".join(RESIZES)}')
        self.vectors = nn.Parameter(torch.zeros(1, num_class_tokens + math.prod(size), channels))
        nn.init.trunc_normal_(self.vectors, std=0.02)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        if tuple(size) == self.size:
            return x + self.vectors
        return x + resize_positions(self.vectors, self.size, size, self.resize)

    def resized(self, vectors: Tensor, name: str = 'vectors') -> Tensor:
        """Vectors of another grid, whose frames are square, for this one; as many as here are taken as they are.

        Raises:
            UserError: their frames are no squares.
        """
        if vectors.shape[1] == self.vectors.shape[1]:
            return vectors
        places = vectors.shape[1] - (self.vectors.shape[1] - math.prod(self.size))
        return resize_positions(vectors, square_grid(places, self.size), self.size, self.resize)


def square_grid(places: int, size: Size) -> Size:
    """The grid of so many places whose frames are square, as many as ``size`` has.

    Raises:
        UserError: there is none.
    """
    frames = size[:-2]
    side = math.isqrt(max(0, places) // math.prod(frames))
    if math.prod(frames) * side**2 != places:
        raise UserError(f'{places} places of positions are no square grid that could be resized to {tuple(size)}')
    return (*frames, side, side)


def resize_positions(vectors: Tensor, size: Size, to: Size, resize: str = 'bicubic') -> Tensor:
    """Vectors ``(1, K + P, C)`` of one grid for another one; class tokens keep theirs."""
    classes, places = split_class_tokens(vectors, size)
    how = RESIZES[resize] if len(size) == 2 else dict(mode='trilinear')
    places = interpolate(to_map(places, size), tuple(to), align_corners=False, **how)
    return torch.cat([classes, to_tokens(places)], dim=1)
