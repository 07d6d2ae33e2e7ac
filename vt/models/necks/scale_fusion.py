"""Maps of several resolutions to one, from the finest down (HRFormer's classifier, as HRNet's)."""

from collections.abc import Sequence
from itertools import pairwise

from mmcv.cnn import ConvModule
from torch import Tensor, nn

from vt.registry import MODELS

from ..embeddings.bottleneck import Bottleneck
from ..layer_init import LayerInit


@MODELS.register_module()
class ScaleFusion(nn.Module):
    """A bottleneck with a depthwise convolution on each map; each sum is halved and added to the next one.

    Args:
        in_channels: of the maps, the finest first, each half as large as the one before.
        inner_channels: of the bottlenecks, which give four times as many.
        out_channels: of the map that leaves.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        inner_channels: Sequence[int] = (32, 64, 128, 256),
        out_channels: int = 2048,
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
        LayerInit('Conv2d')(self)  # as convolutions start in PyTorch

    def forward(self, maps: tuple[Tensor, ...]) -> tuple[Tensor]:
        """Maps ``(N, C_i, H_i, W_i)`` to one, ``(N, out_channels, H, W)``, as large as the coarsest."""
        x, *others = (widen(each) for widen, each in zip(self.widen, maps))
        for halve, other in zip(self.halve, others):
            x = other + halve(x)
        return (self.leave(x),)
