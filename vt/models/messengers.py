"""A messenger for each window, which sees its window and whose channels are shuffled with its neighbours' (MSG).

The messengers stand before the grid's tokens, where class tokens do, row by row of the windows; the parts of this file
go together. Letters: N batch, H and W size of the grid, P = H * W, K messengers, C channels, T tokens of a window, a
heads.
"""

import math

import torch
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

from .attentions.windows import Windows
from .block import Block
from .checks import build_part, require_divisible
from .embeddings.patches import PatchMerging
from .grid import Size, TokenPart, split_class_tokens, to_map
from .positions.relative import RelativePositionBias


def count_windows(size: Size, window: int) -> Size:
    """Rows and columns of windows on a grid, which is padded to whole ones."""
    return tuple(-(-side // window) for side in size)


@MODELS.register_module()
class MessengerEmbed(TokenPart):
    """An embedding's tokens, and a learned messenger before them for each window.

    Args:
        in_channels: of the map.
        channels: C.
        embed: config of the embedding.
        window: side of a window.
        region: the messengers of region x region windows are learned, those of other regions are the same.
    """

    gives_messengers = True

    def __init__(self, in_channels: int, channels: int, embed: dict, window: int = 7, region: int = 4) -> None:
        super().__init__()
        self.embed = build_part(embed, in_channels=in_channels, channels=channels)
        self.window = window
        self.messengers = nn.Parameter(torch.zeros(1, region, region, channels))
        nn.init.trunc_normal_(self.messengers, std=0.02)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, height, width)`` to ``(N, K + P, C)`` and the size of the grid."""
        x, size = self.embed(x)
        rows, columns = (torch.arange(side, device=x.device) for side in count_windows(size, self.window))
        region = self.messengers.shape[1]
        own = self.messengers[:, rows[:, None] % region, columns % region].flatten(1, 2)  # 1, K, C
        return torch.cat([own.expand(x.shape[0], -1, -1), x], dim=1), size


@MODELS.register_module()
class MessengerMerging(PatchMerging):
    """2x2 neighbours merged, among the tokens and, by the same matrix, among the messengers.

    Args:
        in_channels: of the tokens that come.
        channels: C.
        window: side of a window.
    """

    takes_tokens = True
    gives_messengers = True

    def __init__(self, in_channels: int, channels: int, window: int = 7) -> None:
        super().__init__(in_channels, channels)
        self.window = window

    def forward(self, x: Tensor, size: Size) -> tuple[Tensor, Size]:
        """``(N, K + P, in_channels)`` to fewer of C, and the size of their grid."""
        messengers, x = split_class_tokens(x, size)
        messengers, _ = super().forward(to_map(messengers, count_windows(size, self.window)))
        x, size = super().forward(to_map(x, size))
        return torch.cat([messengers, x], dim=1), size

    def out_size(self, size: Size) -> Size:
        """Of a grid the size of the merged one."""
        return tuple(-(-side // 2) for side in size)


@MODELS.register_module()
class MessengerWindows(Windows):
    """Windows of neighbours, each with its messenger before its tokens; a smaller grid is padded to a window.

    Args:
        window: side of a window.
        size: of the grid in training.
    """

    needs_messengers = True

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
    """Relative positions of a window's tokens; to the messenger, and from it, each head has one number.

    Args:
        num_heads: a.
        window: height and width.
    """

    def __init__(self, num_heads: int, window: tuple[int, int]) -> None:
        super().__init__(num_heads, window)
        self.to_messenger, self.from_messenger = (nn.Parameter(torch.zeros(num_heads, 1, 1)) for _ in range(2))
        for number in (self.to_messenger, self.from_messenger):
            nn.init.trunc_normal_(number, std=0.02)

    def forward(self, window: tuple[int, int]) -> Tensor:
        """The bias of each pair of tokens, the messenger first, ``(a, 1 + T, 1 + T)``."""
        bias = super().forward(window)
        rows = torch.cat([self.to_messenger.expand(-1, bias.shape[1], -1), bias], dim=2)
        return torch.cat([self.from_messenger.expand(-1, -1, rows.shape[2]), rows], dim=1)


@MODELS.register_module()
class MessengerBlock(Block):
    """A block that shuffles messengers between attention and feed-forward (MSG, section 3.2).

    Of the G messengers of a region of windows, each then holds the same G-th part of the channels of all. Regions are
    smaller where the windows are no whole ones: the greatest common divisor.

    Args:
        channels, others: as in :class:`vt.models.Block`; the attention is one in :class:`MessengerWindows`.
        region: windows on a side of a region.

    Raises:
        UserError: other windows; ``region^2`` does not divide C.
    """

    takes_between = False

    def __init__(self, channels: int, *args, region: int, **kwargs) -> None:
        super().__init__(channels, *args, **kwargs)
        require_divisible('MessengerBlock', 'channels', channels, 'region * region', region**2)
        windows = getattr(self.attention.part, 'windows', None)
        if not isinstance(windows, MessengerWindows):
            raise UserError('MessengerBlock: its attention is not one in MessengerWindows; set windows of that type')
        self.window, self.region = windows.window[0], region

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        messengers, tokens = split_class_tokens(x + self.attention(x, size), size)
        messengers = shuffle(messengers, count_windows(size, self.window), self.region)
        x = torch.cat([messengers, tokens], dim=1)
        return x + self.feed_forward(x, size)


def shuffle(x: Tensor, windows: Size, region: int) -> Tensor:
    """Messengers ``(N, K, C)`` of so many rows and columns of windows, shuffled in each region."""
    rows, columns = (math.gcd(side, region) for side in windows)
    x = x.unflatten(1, (windows[0] // rows, rows, windows[1] // columns, columns))
    x = x.unflatten(-1, (rows * columns, -1)).transpose(2, 3).flatten(3, 4)  # N, ..., ..., G of messengers, G, C / G
    x = x.transpose(3, 4).flatten(-2).unflatten(3, (rows, columns))
    return x.transpose(2, 3).flatten(1, 4)
