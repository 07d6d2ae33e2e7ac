"""Fuse maps of several resolutions into one, from fine to coarse (classifier of HRFormer and HRNet)."""

from collections.abc import Sequence
from itertools import pairwise

from mmcv.cnn import ConvModule
from torch import Tensor, nn

from vt.models.layer_init import LayerInit
from vt.models.survey.embeddings.bottleneck import Bottleneck
from vt.registry import MODELS


@MODELS.register_module()
class ScaleFusion(nn.Module):
    """Widen each map by a depthwise bottleneck; then repeatedly downsample the sum by two and add the next map.

    Args:
        in_channels: channels of the maps, the finest first; each map has half the size of the previous one.
        inner_channels: inner channels of the bottlenecks, whose output has four times as many.
        out_channels: channels of the output map.
    """

    def __init__(
        self, in_channels: Sequence[int], inner_channels: Sequence[int] = (32, 64, 128, 256), out_channels: int = 2048
    ) -> None:
        super().__init__()
        widths = [4 * inner for inner in inner_channels]
        self.widen = nn.ModuleList(
            Bottleneck(own, wide, inner, depthwise=True)
            for own, wide, inner in zip(in_channels, widths, inner_channels)
        )
        norm = dict(norm_cfg=dict(type='BN'), bias=True)
        self.halve = nn.ModuleList(
            nn.Sequential(
                ConvModule(own, own, 3, stride=2, padding=1, groups=own, act_cfg=None, **norm),
                ConvModule(own, next_one, 1, **norm),
            )
            for own, next_one in pairwise(widths)
        )
        self.leave = ConvModule(widths[-1], out_channels, 1, **norm)
        LayerInit('Conv2d')(self)  # PyTorch's initialisation

    def forward(self, maps: tuple[Tensor, ...]) -> tuple[Tensor]:
        """Maps ``(N, C_i, H_i, W_i)`` to a tuple of one map of the coarsest size, ``(N, out_channels, H, W)``."""
        x, *others = (widen(each) for widen, each in zip(self.widen, maps))
        for halve, other in zip(self.halve, others):
            x = other + halve(x)
        return (self.leave(x),)
