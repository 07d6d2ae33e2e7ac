"""The residual bottleneck of ResNet, optionally with a depthwise convolution."""

from mmcv.cnn import ConvModule
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """``relu(shortcut(x) + convolutions(x))``: 1x1, 3x3 and 1x1 convolutions, each with batch normalisation.

    Args:
        in_channels: channels of the input.
        channels: channels of the output; if they differ, the shortcut is a 1x1 convolution.
        inner_channels: channels of the 3x3 convolution.
        depthwise: make the 3x3 convolution depthwise.
    """

    def __init__(self, in_channels: int, channels: int, inner_channels: int, depthwise: bool = False) -> None:
        super().__init__()
        norm = dict(norm_cfg=dict(type='BN'))
        groups = inner_channels if depthwise else 1
        self.layers = nn.Sequential(
            ConvModule(in_channels, inner_channels, 1, **norm),
            ConvModule(inner_channels, inner_channels, 3, padding=1, groups=groups, **norm),
            ConvModule(inner_channels, channels, 1, act_cfg=None, **norm),
        )
        self.shortcut = nn.Identity()
        if channels != in_channels:
            self.shortcut = ConvModule(in_channels, channels, 1, act_cfg=None, **norm)
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """``(N, in_channels, H, W)`` to ``(N, channels, H, W)``."""
        return self.act(self.shortcut(x) + self.layers(x))
