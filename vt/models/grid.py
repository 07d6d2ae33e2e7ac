"""The interface of token parts: they are called with tokens ``(N, K + P, C)`` and the size of their grid.

::

    image (N, 3, 224, 224)
      |  embed(map), or embed(x, size) of one that takes tokens
      v
    x  (N, K + P, C)  =  [ K class tokens | P tokens of the grid, row by row ]    size = (H, W),    P = H * W
      |                                                                               or (T, H, W), P = T * H * W
      |  position(x, size)                     -> (N, K + P, C)
      |  block(x, size): attention(x, size),   -> (N, K + P, C)
      |                  feed_forward(x, size)
      v
    class tokens  x[:, :K]      map  to_map(x[:, K:], size)  (N, C, H, W)

A part that needs a map gets the tokens of the grid only. Letters: N batch, C channels.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from vt.registry import MODELS

Size = tuple[int, ...]


def split_class_tokens(x: Tensor, size: Size) -> tuple[Tensor, Tensor]:
    """Split tokens ``(N, K + P, C)`` into class tokens ``(N, K, C)`` and tokens of the grid ``(N, P, C)``."""
    num_class_tokens = x.shape[1] - math.prod(size)
    return x[:, :num_class_tokens], x[:, num_class_tokens:]


def to_map(x: Tensor, size: Size) -> Tensor:
    """View tokens of the grid ``(N, P, C)`` as a map ``(N, C, H, W)`` or ``(N, C, T, H, W)``."""
    return x.transpose(1, 2).unflatten(2, size)


def to_tokens(x: Tensor) -> Tensor:
    """View a map ``(N, C, H, W)`` or ``(N, C, T, H, W)`` as tokens ``(N, P, C)``."""
    return x.flatten(2).transpose(1, 2)


class TokenPart(nn.Module):
    """Base class of the parts of :class:`vt.TokenBackbone`; subclasses override the attributes that differ.

    Attributes:
        updates_class_tokens_alone: for an attention: it returns an update of the only class token, ``(N, 1, C)``.
        takes_tokens: for an embedding: it is called with the tokens of the previous stage and their size, not a map.
    """

    updates_class_tokens_alone: bool = False
    takes_tokens: bool = False


class Identity(TokenPart):
    """Placeholder for an omitted part or projector: return the tokens, or the map, unchanged."""

    def forward(self, x: Tensor, other: Size | Tensor) -> Tensor:
        return x


@MODELS.register_module()
class OnMap(TokenPart):
    """Apply a module for maps to the tokens of the grid; class tokens are unchanged.

    The default module, a depthwise 3x3 convolution, is the positional encoding of CPVT with ``combine='add'``, the
    pixel attention of ResT with ``'gate'``, LePE on the values of an attention, or the local part of a feed-forward.

    Args:
        channels: C.
        combine: ``'plain'``, the output of the module; ``'add'``, output plus input; ``'gate'``, input times the
            sigmoid of the output.
        module: config of the module; missing options are those of a depthwise 3x3 convolution with a bias.
        size, num_class_tokens: not used; accepted because every position embedding gets them.
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
        depthwise: dict[str, Any] = dict(type='ConvModule', kernel_size=3, act_cfg=None)
        config = depthwise | (module or {})
        if config['type'] == 'ConvModule':
            widths = dict(in_channels=channels, out_channels=channels, groups=channels)
            config = dict(padding=config['kernel_size'] // 2) | widths | config
        self.module = MODELS.build(config)
        self.combine = combine
        for part in self.module.modules():
            if isinstance(part, nn.Conv2d):
                part.reset_parameters()  # mmcv's initialisation ignores the groups of depthwise convolutions

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        classes, tokens = split_class_tokens(x, size)
        result = self.COMBINATIONS[self.combine](tokens, to_tokens(self.module(to_map(tokens, size))))
        return result if not classes.shape[1] else torch.cat([classes, result], dim=1)
