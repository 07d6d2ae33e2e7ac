"""Messenger tokens: one per window, whose channels are shuffled with those of neighbouring windows (MSG-Transformer).

The messengers come before the tokens of the grid, in place of class tokens, in row-major order of the windows. The
parts of this file are used together. Letters: N batch, H and W size of the grid, P = H * W, K messengers, C channels,
T tokens of a window, a heads.
"""

import math

import torch
from torch import Tensor, nn

from vt.models.checks import build_part
from vt.models.grid import Size, TokenPart, split_class_tokens, to_map
from vt.models.survey.attentions.windows import Windows
from vt.models.survey.embeddings.patches import PatchMerging
from vt.models.survey.positions.relative import RelativePositionBias
from vt.registry import MODELS

from .block import Block


def count_windows(size: Size, window: int) -> Size:
    """Rows and columns of windows on a grid that is padded to whole windows."""
    return tuple(-(-side // window) for side in size)


@MODELS.register_module()
class MessengerEmbed(TokenPart):
    """An embedding that puts a learned messenger per window before its tokens.

    Args:
        in_channels: channels of the map.
        channels: C.
        embed: config of the embedding.
        window: side of a window.
        region: side of a region in windows; all regions share the same region x region learned messengers.
    """

    def __init__(self, in_channels: int, channels: int, embed: dict, window: int = 7, region: int = 4) -> None:
        super().__init__()
        self.embed = build_part(embed, in_channels=in_channels, channels=channels)
        self.window = window
        self.messengers = nn.Parameter(0.02 * torch.randn(1, region, region, channels))

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, height, width)`` to ``(N, K + P, C)`` and the size of the grid."""
        x, size = self.embed(x)
        rows, columns = (torch.arange(side, device=x.device) for side in count_windows(size, self.window))
        region = self.messengers.shape[1]
        own = self.messengers[:, rows[:, None] % region, columns % region].flatten(1, 2)  # 1, K, C
        return torch.cat([own.expand(x.shape[0], -1, -1), x], dim=1), size


@MODELS.register_module()
class MessengerMerging(PatchMerging):
    """Patch merging of the tokens and, with the same weights, of the messengers.

    Args:
        in_channels: channels of the input tokens.
        channels: C.
        window: side of a window.
    """

    takes_tokens = True

    def __init__(self, in_channels: int, channels: int, window: int = 7) -> None:
        super().__init__(in_channels, channels)
        self.window = window

    def forward(self, x: Tensor, size: Size) -> tuple[Tensor, Size]:
        """``(N, K + P, in_channels)`` to a quarter of the tokens with C channels, and the size of their grid."""
        messengers, x = split_class_tokens(x, size)
        messengers, _ = super().forward(to_map(messengers, count_windows(size, self.window)))
        x, size = super().forward(to_map(x, size))
        return torch.cat([messengers, x], dim=1), size

    def out_size(self, size: Size) -> Size:
        """Size of the grid after merging."""
        return tuple(-(-side // 2) for side in size)


@MODELS.register_module()
class MessengerWindows(Windows):
    """Windows of neighbouring tokens, each with its messenger first; a smaller grid is padded to one window.

    Args:
        window: side of a window.
        size: grid size during training.
    """

    def __init__(self, window: int, size: Size = (0, 0)) -> None:
        super().__init__(window, size=size, shrink=False)

    def partition(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N * K, 1 + T, C)``."""
        messengers, x = split_class_tokens(x, size)
        return torch.cat([messengers.reshape(-1, 1, x.shape[-1]), super().partition(x, size)], dim=1)

    def reverse(self, x: Tensor, size: Size) -> Tensor:
        """``(N * K, 1 + T, C)`` to ``(N, K + P, C)``."""
        tokens = super().reverse(x[:, 1:], size)
        return torch.cat([x[:, 0].reshape(tokens.shape[0], -1, x.shape[-1]), tokens], dim=1)


@MODELS.register_module()
class MessengerBias(RelativePositionBias):
    """Relative position bias of a window's tokens, plus one value per head to the messenger and one from it.

    Args:
        num_heads: a.
        window: height and width of a window.
    """

    def __init__(self, num_heads: int, window: tuple[int, int]) -> None:
        super().__init__(num_heads, window)
        self.to_messenger, self.from_messenger = (nn.Parameter(0.02 * torch.randn(num_heads, 1, 1)) for _ in range(2))

    def forward(self, window: tuple[int, int]) -> Tensor:
        """Return the bias of each pair of tokens, the messenger first, ``(a, 1 + T, 1 + T)``."""
        bias = super().forward(window)
        rows = torch.cat([self.to_messenger.expand(-1, bias.shape[1], -1), bias], dim=2)
        return torch.cat([self.from_messenger.expand(-1, -1, rows.shape[2]), rows], dim=1)


@MODELS.register_module()
class MessengerBlock(Block):
    """A block that shuffles the messengers between attention and feed-forward (MSG, section 3.2).

    In a region of G windows, each messenger gets one G-th of the channels of every messenger. If the numbers of windows
    are not divisible by ``region``, the side of a region is their greatest common divisor.

    Args:
        channels: C.
        region: side of a region, in windows; its square divides C.
        *args, **kwargs: size, num_heads, attention, which must use :class:`MessengerWindows`, feed_forward, and other
            options of :class:`vt.models.Block`.
    """

    def __init__(self, channels: int, *args, region: int, **kwargs) -> None:
        super().__init__(channels, *args, **kwargs)
        self.window, self.region = self.attention.part.windows.window[0], region

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        messengers, tokens = split_class_tokens(x + self.attention(x, size), size)
        messengers = shuffle(messengers, count_windows(size, self.window), self.region)
        return self.feed(torch.cat([messengers, tokens], dim=1), size)


def shuffle(x: Tensor, windows: Size, region: int) -> Tensor:
    """Shuffle the channels of messengers ``(N, K, C)`` within each region; ``windows`` are rows and columns."""
    rows, columns = (math.gcd(side, region) for side in windows)
    x = x.unflatten(1, (windows[0] // rows, rows, windows[1] // columns, columns))
    x = x.unflatten(-1, (rows * columns, -1)).transpose(2, 3).flatten(3, 4)  # N, ..., ..., G of messengers, G, C / G
    x = x.transpose(3, 4).flatten(-2).unflatten(3, (rows, columns))
    return x.transpose(2, 3).flatten(1, 4)
