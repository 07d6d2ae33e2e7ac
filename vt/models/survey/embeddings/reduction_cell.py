"""Reduction cell of ViTAE: pyramid of dilated convolutions, attention and parallel convolutions (Xu et al., 2021).

Letters: N batch, H and W size of the output grid, P = H * W, C channels.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn

from vt.models.checks import require_divisible
from vt.models.grid import Size, TokenPart, to_tokens
from vt.models.survey.attentions.performer import TokenPerformer
from vt.registry import MODELS

DROPOUT = 0.1  # probability, of the outputs of attention and feed-forward


@MODELS.register_module()
class ReductionCell(TokenPart):
    """Parallel dilated convolutions, then ``attention(norm(x)) + convolutions(map)`` and a feed-forward (section 3.2).

    Args:
        in_channels: channels of the map.
        channels: C.
        kernel_size: kernel of the dilated convolutions.
        stride: stride of the cell, 2 or 4.
        dilations: dilation of each convolution.
        transform: apply attention, convolutions and feed-forward to 64 channels of each dilated convolution; otherwise
            the dilated convolutions share C channels.
        epsilon: added to the denominator of the attention weights; 0 in the paper, 1e-8 for ViTAE's weights.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        kernel_size: int,
        stride: int,
        dilations: list[int],
        transform: bool = True,
        epsilon: float = 0.0,
    ) -> None:
        super().__init__()
        pyramid_channels = 64
        if not transform:
            require_divisible('ReductionCell', 'channels', channels, 'number of dilations', len(dilations))
            pyramid_channels = channels // len(dilations)
        self.pyramid = nn.ModuleList()
        for dilation in dilations:
            padding = -(-((kernel_size - 1) * dilation + 1 - stride) // 2)
            self.pyramid.append(nn.Conv2d(in_channels, pyramid_channels, kernel_size, stride, padding, dilation))
        self.act = nn.GELU()
        self.transform = transform
        if not transform:
            return
        wide = pyramid_channels * len(dilations)
        self.norm = nn.LayerNorm(wide)
        self.attend = TokenPerformer(wide, channels, dropout=DROPOUT, epsilon=epsilon)
        strides = [2, 2, 1] if stride == 4 else [stride, 1, 1]
        widths = [in_channels, pyramid_channels, pyramid_channels, channels]
        self.local = local_convolutions(widths, [None, dict(type='BN'), None], strides)
        self.feed_norm = nn.LayerNorm(channels)
        self.feed_forward = nn.Sequential(
            nn.Linear(channels, channels), nn.GELU(), nn.Linear(channels, channels), nn.Dropout(DROPOUT)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, height, width)`` to tokens ``(N, P, C)`` and the size of their grid."""
        scales = torch.cat([self.act(convolve(x)) for convolve in self.pyramid], dim=1)
        size = tuple(scales.shape[2:])
        if not self.transform:
            return to_tokens(scales), size
        local = self.local(x)[..., : size[0], : size[1]]
        x = self.attend(self.norm(to_tokens(scales)), size) + to_tokens(local)
        return x + self.feed_forward(self.feed_norm(x)), size


def local_convolutions(
    widths: list[int], norms: list[dict | None], strides: Sequence[int] = (1, 1, 1), groups: int = 1
) -> nn.Sequential:
    """3x3 convolutions with SiLU from one of ``widths`` to the next, with a config of a normalisation for each."""
    shared = dict(kernel_size=3, padding=1, groups=groups, act_cfg=dict(type='SiLU'), bias=True)
    sizes = zip(widths, widths[1:], strides, norms)
    layers: list[Any] = [ConvModule(own, wide, stride=s, norm_cfg=norm, **shared) for own, wide, s, norm in sizes]
    for layer in layers:
        layer.conv.reset_parameters()  # PyTorch's initialisation, not mmcv's
    return nn.Sequential(*layers)
