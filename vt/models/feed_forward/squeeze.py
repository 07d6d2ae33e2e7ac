"""Channels weighed by what all tokens hold together."""

from mmpretrain.models.utils import SELayer
from torch import Tensor

from vt.registry import MODELS

from ..grid import Size, TokenPart, to_map, to_tokens


@MODELS.register_module()
class SqueezeExcite(TokenPart, SELayer):
    """MMPretrain's squeeze and excitation, on tokens of a grid.

    Args:
        channels: C.
        **kwargs: other options of :class:`mmpretrain.models.utils.SELayer`, such as ``squeeze_channels``.
    """

    def __init__(self, channels: int, **kwargs) -> None:
        super().__init__(channels, **kwargs)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        return to_tokens(super().forward(to_map(x, size)))
