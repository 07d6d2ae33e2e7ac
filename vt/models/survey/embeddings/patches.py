"""Embeddings of patches and cubes, patch merging and convolutional embedding.

An embedding takes a map ``(N, in_channels, H, W)`` and returns tokens ``(N, P, C)`` and the size of their grid.
"""

from collections.abc import Sequence
from typing import Any

from mmcv.cnn import ConvModule
from mmcv.cnn.bricks import transformer
from mmpretrain.models import utils
from torch import Tensor, nn
from torch.nn.functional import pad, pixel_unshuffle

from vt.models.grid import Size, TokenPart, to_tokens
from vt.registry import MODELS


@MODELS.register_module()
class PatchEmbed(TokenPart, transformer.PatchEmbed):
    """mmcv's patch embedding: a strided convolution, optionally with a normalisation.

    Args:
        in_channels: channels of the map.
        channels: C.
        kernel_size: kernel of the convolution, in pixels.
        stride: stride of the convolution; ``kernel_size`` by default.
        **kwargs: other options of :class:`mmcv.cnn.bricks.transformer.PatchEmbed`, such as ``padding``, ``norm_cfg``.
    """

    def __init__(self, in_channels: int, channels: int, kernel_size: int, stride: int | None = None, **kwargs) -> None:
        super().__init__(in_channels, channels, kernel_size=kernel_size, stride=stride or kernel_size, **kwargs)


@MODELS.register_module()
class PatchMerging(TokenPart, utils.PatchMerging):
    """MMPretrain's patch merging: concatenate 2x2 neighbours, normalise, apply a linear layer (Swin, section 3.1).

    Odd sides are padded with zeros. Unlike MMPretrain's, it gathers neighbours without unfolding, which saves two
    copies of the map.

    Args:
        in_channels: channels of the map.
        channels: C.
        use_post_norm: normalise after the linear layer instead of before it.
    """

    norm: nn.Module

    def __init__(self, in_channels: int, channels: int, use_post_norm: bool = False) -> None:
        super().__init__(in_channels, channels, use_post_norm=use_post_norm)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        x = pixel_unshuffle(pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2)), 2)
        size, x = tuple(x.shape[2:]), to_tokens(x)
        return self.norm(self.reduction(x)) if self.use_post_norm else self.reduction(self.norm(x)), size


@MODELS.register_module()
class ConvolutionalEmbed(TokenPart):
    """Convolutional stem, optional max pooling, then patch embedding (CeiT, ResT, LV-ViT, early convolutions).

    Args:
        in_channels: channels of the map.
        channels: C.
        layers: options of :class:`mmcv.cnn.ConvModule` for each convolution; ``out_channels`` is C by default.
        patch: options of :class:`PatchEmbed`; None makes each pixel of the last layer a token.
        pool: kernel of a max pooling of stride 2 after the layers; None for none.
    """

    def __init__(
        self, in_channels: int, channels: int, layers: list[dict], patch: dict | None = None, pool: int | None = None
    ) -> None:
        super().__init__()
        modules: list[Any] = []
        for layer in layers:
            defaults = dict(in_channels=in_channels, out_channels=channels, padding=layer['kernel_size'] // 2)
            modules.append(ConvModule(**defaults | layer))
            modules[-1].conv.reset_parameters()  # PyTorch's initialisation, not mmcv's
            in_channels = modules[-1].out_channels
        if pool is not None:
            modules.append(nn.MaxPool2d(pool, stride=2, padding=pool // 2))
        self.layers = nn.Sequential(*modules)
        self.patch = PatchEmbed(in_channels, channels, **patch) if patch else None

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, H, W)`` to tokens ``(N, P, C)`` and the size of their grid."""
        x = self.layers(x)
        return self.patch(x) if self.patch is not None else (to_tokens(x), tuple(x.shape[2:]))


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
