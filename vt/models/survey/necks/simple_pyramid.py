"""A feature pyramid of one map, for backbones such as a plain ViT (ViTDet: Li et al., ECCV 2022, section 3).

Letters: N batch, C channels, H and W size of the map.
"""

from collections.abc import Sequence

from mmengine.model import BaseModule
from mmpretrain.models.utils import LayerNorm2d
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class SimplePyramid(BaseModule):
    """Four maps of the last one, of 4, 2, 1 and 1/2 times its size: of stride 16 those of strides 4, 8, 16 and 32.

    They are made by transposed convolutions of stride 2, which halve the channels each, and a maximum over 2x2 pixels.
    ViTDet's 1x1 and 3x3 convolutions are left to the neck behind it, FPN or :class:`vt.models.VTFPN`::

        neck=[
            dict(type='vt.SimplePyramid', in_channels=384),
            dict(type='vt.VTFPN', in_channels=[96, 192, 384, 384]),
        ]

    Args:
        in_channels: C; a multiple of 4.
        init_cfg: as in mmengine.
    """

    def __init__(self, in_channels: int, init_cfg: dict | Sequence[dict] | None = None) -> None:
        super().__init__(init_cfg)
        half = in_channels // 2
        self.levels = nn.ModuleList(
            [
                nn.Sequential(
                    nn.ConvTranspose2d(in_channels, half, 2, stride=2),
                    LayerNorm2d(half, eps=1e-6),
                    nn.GELU(),
                    nn.ConvTranspose2d(half, half // 2, 2, stride=2),
                ),
                nn.ConvTranspose2d(in_channels, half, 2, stride=2),
                nn.Identity(),
                nn.MaxPool2d(2),
            ]
        )

    def forward(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps of a backbone, of which the last ``(N, C, H, W)`` is taken, to four with C/4, C/2, C and C channels."""
        return tuple(level(inputs[-1]) for level in self.levels)
