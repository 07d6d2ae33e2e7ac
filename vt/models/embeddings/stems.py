"""Convolutions before the patches: early layers that see neighbours (CeiT, ResT, LV-ViT, early convolutions)."""

from mmcv.cnn import ConvModule
from torch import Tensor, nn

from vt.registry import MODELS

from ..grid import Size, TokenPart, to_tokens
from .patches import PatchEmbed


@MODELS.register_module()
class ConvolutionalEmbed(TokenPart):
    """Convolutions with their normalisation and activation, a pooling on request, then a token a patch.

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
