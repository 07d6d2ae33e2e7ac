"""Absolute position embeddings, learned or sinusoidal.

Letters: N batch, K class tokens, P positions of the grid, C channels.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from vt.checkpoints.grids import FileGrids
from vt.models.grid import Size, TokenPart, split_class_tokens, to_map, to_tokens
from vt.registry import MODELS


@MODELS.register_module()
class AbsolutePosition(TokenPart):
    """Add a learned vector for each position and class token: ``x + E``. Other grids use resized vectors.

    Args:
        channels: C.
        size: grid size during training, ``(H, W)`` or ``(T, H, W)``.
        num_class_tokens: K.
        resize: interpolation for other grids: ``'bicubic'`` (code of CeiT, LocalViT and T2T), with antialiasing when
            downsampling, or ``'bilinear'`` (PVT's code). Videos always use trilinear. timm's default always uses
            antialiasing, which gives other values.
    """

    vectors: Tensor

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0, resize: str = 'bicubic') -> None:
        super().__init__()
        self.size = tuple(size)
        self.resize = resize
        self.set_vectors(channels, num_class_tokens)

    def set_vectors(self, channels: int, num_class_tokens: int) -> None:
        """Create the vectors for the grid during training, ``(1, K + P, C)``."""
        self.vectors = nn.Parameter(torch.zeros(1, num_class_tokens + math.prod(self.size), channels))
        nn.init.trunc_normal_(self.vectors, std=0.02)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        return x + resize_positions(self.vectors, self.size, size, self.resize)

    def resized(self, vectors: Tensor, name: str, grids: FileGrids) -> tuple[Tensor, Size, Size]:
        """Resize vectors ``(1, K + P', C)`` of a checkpoint to the grid of this module.

        Returns the resized vectors ``(1, K + P, C)``, the old grid and the new one.

        Raises:
            UserError: the grid of the checkpoint is not known.
        """
        vectors = vectors.reshape(1, -1, vectors.shape[-1])
        size = grids.find(self.size, vectors.shape[1] - (self.vectors.shape[1] - math.prod(self.size)))
        return resize_positions(vectors, size, self.size, self.resize), size, self.size


@MODELS.register_module()
class SinusoidalPosition(AbsolutePosition):
    """Add fixed sinusoidal vectors to the tokens, which are numbered row by row, class tokens first.

    Even channels are sines, odd channels cosines (Vaswani et al., 2017, section 3.5; T2T-ViT). Those in a checkpoint
    are used, resized to other grids, as in T2T-ViT's code; it may lack them.

    Args:
        channels: C, even.
        size: grid size during training, ``(H, W)`` or ``(T, H, W)``.
        num_class_tokens: K.
        resize: interpolation for other grids, ``'bicubic'`` or ``'bilinear'``.
    """

    def set_vectors(self, channels: int, num_class_tokens: int) -> None:
        numbers = torch.arange(num_class_tokens + math.prod(self.size), dtype=torch.float64)
        lengths = 10000 ** (torch.arange(0, channels, 2, dtype=torch.float64) / channels)
        angles = numbers[:, None] / lengths
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # K + P, C
        self.register_buffer('vectors', waves[None].to(torch.get_default_dtype()))
        self.register_load_state_dict_pre_hook(_keep_vectors)


def _keep_vectors(module: nn.Module, state: dict, prefix: str, *options: Any) -> None:
    state.setdefault(f'{prefix}vectors', module.vectors)


def resize_positions(vectors: Tensor, size: Size, to: Size, resize: str = 'bicubic', antialias: bool = True) -> Tensor:
    """Resize vectors ``(1, K + P, C)`` from the grid ``size`` to the grid ``to``; those of class tokens are kept.

    Grids of one side are resized linearly, those of three trilinearly.
    """
    if tuple(size) == tuple(to):
        return vectors
    classes, positions = split_class_tokens(vectors, size)
    mode = {1: 'linear', 2: resize, 3: 'trilinear'}[len(size)]
    # Antialiasing changes the cubic kernel even when upsampling, so use it for downsampling only.
    smooth = antialias and mode == 'bicubic' and any(new < old for new, old in zip(to, size))
    positions = interpolate(to_map(positions, size), tuple(to), mode=mode, align_corners=False, antialias=smooth)
    return torch.cat([classes, to_tokens(positions)], dim=1)
