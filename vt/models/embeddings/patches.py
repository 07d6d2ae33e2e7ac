"""A token for each patch of an image, behind convolutions on request, or for each 2x2 neighbours of a map.

An embedding takes a map ``(N, in_channels, H, W)`` and gives tokens ``(N, P, C)`` and the size of their grid.
"""

from mmcv.cnn import ConvModule
from mmcv.cnn.bricks import transformer
from mmpretrain.models import utils
from torch import Tensor, nn
from torch.nn.functional import pad, pixel_unshuffle

from vt.registry import MODELS

from ..grid import Size, TokenPart, to_tokens


@MODELS.register_module()
class PatchEmbed(TokenPart, transformer.PatchEmbed):
    """mmcv's: a strided convolution, with a normalisation on request.

    Args:
        in_channels: of the map.
        channels: C.
        kernel_size: of the convolution, whose ``stride`` is the same by default.
        **kwargs: other options of :class:`mmcv.cnn.bricks.transformer.PatchEmbed`, such as ``padding``, ``norm_cfg``.
    """

    def __init__(self, in_channels: int, channels: int, kernel_size: int, stride: int | None = None, **kwargs) -> None:
        super().__init__(in_channels, channels, kernel_size=kernel_size, stride=stride or kernel_size, **kwargs)


@MODELS.register_module()
class PatchMerging(TokenPart, utils.PatchMerging):
    """MMPretrain's: the channels of 2x2 neighbours together, normalised and multiplied by a matrix (Swin, section 3.1).

    A grid of an odd side is padded with zeros. The neighbours are gathered without MMPretrain's unfolding, which takes
    two more copies of the map.

    Args:
        in_channels: of the map.
        channels: C.
        use_post_norm: normalise behind the matrix instead of before it.
    """

    def __init__(self, in_channels: int, channels: int, use_post_norm: bool = False) -> None:
        super().__init__(in_channels, channels, use_post_norm=use_post_norm)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        x = pixel_unshuffle(pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2)), 2)
        size, x = tuple(x.shape[2:]), to_tokens(x)
        return self.norm(self.reduction(x)) if self.use_post_norm else self.reduction(self.norm(x)), size


@MODELS.register_module()
class ConvolutionalEmbed(TokenPart):
    """Convolutions, normalised, a pooling on request, then a token a patch (CeiT, ResT, LV-ViT, early convolutions).

    Args:
        in_channels: of the map.
        channels: C.
        layers: configs of the convolutions, options of :class:`mmcv.cnn.ConvModule`; one that names no ``out_channels``
            has C.
        patch: options of :class:`PatchEmbed`; without it the last layer's pixels are the tokens.
        pool: side of a max pooling of stride 2 behind the layers; none where it is None.
    """

    def __init__(
        self, in_channels: int, channels: int, layers: list[dict], patch: dict | None = None, pool: int | None = None
    ) -> None:
        super().__init__()
        modules = []
        for layer in layers:
            defaults = dict(in_channels=in_channels, out_channels=channels, padding=layer['kernel_size'] // 2)
            modules.append(ConvModule(**defaults | layer))
            modules[-1].conv.reset_parameters()  # as convolutions start in PyTorch
            in_channels = modules[-1].out_channels
        if pool is not None:
            modules.append(nn.MaxPool2d(pool, stride=2, padding=pool // 2))
        self.layers = nn.Sequential(*modules)
        self.patch = PatchEmbed(in_channels, channels, **patch) if patch else None

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, H, W)`` to tokens ``(N, P, C)`` and the size of their grid."""
        x = self.layers(x)
        return self.patch(x) if self.patch is not None else (to_tokens(x), tuple(x.shape[2:]))
