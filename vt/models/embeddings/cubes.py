"""Cube embedding of videos."""

from collections.abc import Sequence

from torch import Tensor, nn

from vt.registry import MODELS

from ..grid import Size, TokenPart, to_tokens


@MODELS.register_module()
class CubeEmbed(TokenPart):
    """One token per cube of a video, by a strided 3D convolution; cubes may overlap (MViT, section 3.2).

    Args:
        in_channels: channels of a frame.
        channels: C.
        kernel_size: size of a cube: frames, height and width in pixels.
        stride: stride of the cubes; ``kernel_size`` by default.
        padding: zero padding of each side.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        kernel_size: Sequence[int],
        stride: Sequence[int] | None = None,
        padding: Sequence[int] = (0, 0, 0),
    ) -> None:
        super().__init__()
        stride = stride or kernel_size
        self.projection = nn.Conv3d(in_channels, channels, tuple(kernel_size), tuple(stride), tuple(padding))

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Video ``(N, in_channels, frames, height, width)`` to tokens ``(N, P, C)`` and their grid ``(T, H, W)``."""
        x = self.projection(x)
        return to_tokens(x), tuple(x.shape[2:])
