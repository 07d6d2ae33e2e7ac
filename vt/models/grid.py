"""The contract of token parts: tokens ``(N, K + P, C)`` with the size of their grid, whose P tokens fill it.

The size is ``(H, W)`` of an image, P = H * W, or ``(T, H, W)`` of a video, P = T * H * W. The K class tokens come
first; a part that needs a map sees the grid's tokens alone. Letters: N batch, C channels.
"""

import math

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

Size = tuple[int, ...]


def split_class_tokens(x: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """Class tokens ``(N, K, C)`` and the grid's ``(N, P, C)``."""
    num_class_tokens = x.shape[1] - math.prod(size)
    return x[:, :num_class_tokens], x[:, num_class_tokens:]


def to_map(x: Tensor, size: Size) -> Tensor:
    """The grid's tokens ``(N, P, C)`` as a map ``(N, C, H, W)`` or ``(N, C, T, H, W)``, a view."""
    return x.transpose(1, 2).unflatten(2, size)


def to_tokens(x: Tensor) -> Tensor:
    """A map ``(N, C, H, W)`` or ``(N, C, T, H, W)`` as tokens ``(N, P, C)``, a view."""
    return x.flatten(2).transpose(1, 2)


@MODELS.register_module()
class OnMap(nn.Module):
    """A module on maps as a token part: the grid's tokens are seen as a map; class tokens stay as they are.

    Its default, a depthwise 3x3 convolution, is the positional encoding of CPVT with ``combine='add'``, ResT's pixel
    attention with ``'gate'``, LePE on the values of an attention, and the local part of a feed-forward.

    Args:
        channels: C.
        combine: ``'plain'``, the module's result; ``'add'``, its sum with its input; ``'gate'``, the input times the
            sigmoid of the result.
        module: config of the module; missing keys are those of a depthwise 3x3 convolution with a bias.
        size, num_class_tokens: not used; every position is told them.
    """

    COMBINATIONS = dict(
        plain=lambda x, result: result, add=lambda x, result: x + result, gate=lambda x, result: x * result.sigmoid()
    )

    def __init__(
        self,
        channels: int,
        combine: str = 'plain',
        module: dict | None = None,
        size: Size | None = None,
        num_class_tokens: int = 0,
    ) -> None:
        super().__init__()
        depthwise = dict(type='ConvModule', kernel_size=3, act_cfg=None)
        config = depthwise | (module or {})
        if config['type'] == 'ConvModule':
            widths = dict(in_channels=channels, out_channels=channels, groups=channels)
            config = dict(padding=config['kernel_size'] // 2) | widths | config
        self.module = MODELS.build(config)
        if combine not in self.COMBINATIONS:
            raise UserError(f'OnMap: combine={combine!r} is not one of {", ".join(self.COMBINATIONS)}')
        self.combine = combine
        for part in self.module.modules():
            if isinstance(part, nn.Conv2d):
                part.reset_parameters()  # mmcv's start counts all channels of a depthwise one

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        classes, tokens = split_class_tokens(x, size)
        result = self.COMBINATIONS[self.combine](tokens, to_tokens(self.module(to_map(tokens, size))))
        return result if not classes.shape[1] else torch.cat([classes, result], dim=1)
