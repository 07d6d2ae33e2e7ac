"""The contract of a token part: it is called with tokens ``(N, K + P, C)`` and the size of their grid. ::

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

A part that needs a map sees the grid's tokens alone. What else a part asks for stands in :class:`TokenPart`, and is
checked when the backbone is built. Letters: N batch, C channels.
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


class TokenPart(nn.Module):
    """A part of a backbone of tokens, and what it asks of the tokens; a subclass overrides what differs.

    Attributes:
        takes_class_tokens: there may be class tokens before the grid's.
        num_class_tokens_needed: there must be so many; None for any number.
        updates_class_tokens_alone: of an attention, its result is of the class tokens alone, ``(N, K, C)``.
        takes_tokens: of an embedding, it is called with the tokens of the stage before and their size, not with a map.
        gives_messengers: of an embedding, messengers stand where class tokens do (:mod:`vt.models.messengers`).
        needs_messengers: they must be there.
        smallest_side: of a reduction of keys, the shortest side of a grid that it can be called with.
    """

    takes_class_tokens: bool = True
    num_class_tokens_needed: int | None = None
    updates_class_tokens_alone: bool = False
    takes_tokens: bool = False
    gives_messengers: bool = False
    needs_messengers: bool = False
    smallest_side: int = 0


class Unchanged(TokenPart):
    """Stands where a part is left out: gives the tokens as they came."""

    def forward(self, x: Tensor, size: Size) -> Tensor:
        return x


@MODELS.register_module()
class OnMap(TokenPart):
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
