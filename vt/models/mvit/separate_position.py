"""Separate position embeddings for space, time and class tokens.

Source: Fan et al., Multiscale Vision Transformers, ICCV 2021, section 3.2 and table 11. Letters: N batch, K class
tokens, P positions of the grid, T frames, C channels.
"""

import math

import torch
from torch import Tensor, nn

from vt.checkpoints.grids import FileGrids
from vt.models.grid import Size, TokenPart
from vt.models.survey.positions.absolute import resize_positions
from vt.registry import MODELS


@MODELS.register_module()
class SeparatePosition(TokenPart):
    """Add learned vectors for the position in a frame and for the frame: ``x + E_space + E_time``.

    Class tokens have their own vectors. Other grids use vectors resized bicubically in space and linearly in time.

    Args:
        channels: C.
        size: grid size during training, ``(H, W)`` or ``(T, H, W)``.
        num_class_tokens: K.
        time: use ``E_time``; no effect on images.
    """

    def __init__(self, channels: int, size: Size, num_class_tokens: int = 0, time: bool = True) -> None:
        super().__init__()
        self.size = tuple(size)

        def vectors(length: int) -> nn.Parameter:
            return nn.Parameter(nn.init.trunc_normal_(torch.empty(1, length, channels), std=0.02))

        self.space = vectors(math.prod(size[-2:]))
        self.time = vectors(size[0]) if time and len(size) == 3 else None
        self.classes = vectors(num_class_tokens) if num_class_tokens else None

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        positions = resize_positions(self.space, self.size[-2:], size[-2:])
        if self.time is not None:
            time = resize_positions(self.time, self.size[:1], size[:1])  # 1, T, C
            positions = (time[:, :, None] + positions[:, None]).flatten(1, 2)
        elif len(size) == 3:
            positions = positions.repeat(1, size[0], 1)
        return x + (positions if self.classes is None else torch.cat([self.classes, positions], dim=1))

    def resized(self, vectors: Tensor, name: str, grids: FileGrids) -> tuple[Tensor, Size, Size]:
        """Resize vectors of a checkpoint to the grid of this module; return them, the old grid and the new one.

        Raises:
            UserError: the grid of the checkpoint is not known.
        """
        vectors, own = vectors.reshape(1, -1, vectors.shape[-1]), self.get_parameter(name)
        if name == 'space':
            size, to = grids.find(self.size[-2:], vectors.shape[1]), self.size[-2:]
        else:
            size, to = vectors.shape[1:2], (own if name == 'time' else vectors).shape[1:2]
        return resize_positions(vectors, size, to), size, to
