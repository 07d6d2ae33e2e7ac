"""A stage of a vision transformer: tokens from a map, their positions, and blocks.

Letters: N batch, K class tokens, P tokens of the stage's grid, C channels.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from mmcv.cnn import build_norm_layer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vt.errors import UserError

from ..checks import build_part, check_tokens, optional_part, require_with
from ..grid import Size, TokenPart

NORM = dict(type='LN', eps=1e-6)
PARTS = dict(attention='vt.Attention', feed_forward='vt.FeedForward')  # where a config names no type


class SameTokens(TokenPart):
    """Stands where a stage has no embedding: it goes on with the tokens of the stage before."""

    takes_tokens = True

    def forward(self, x: Tensor, size: Size) -> tuple[Tensor, Size]:
        return x, size


class Stage(nn.Module):
    """Tokens from a map, their positions, and blocks.

    Args:
        in_channels: of the map.
        size: of the map in training.
        channels: C; its blocks may grow them.
        depth: number of blocks.
        drop_paths: stochastic depth of each.
        embed: config of how tokens come from the map; None where they are those of the stage before.
        class_tokens: K, learned tokens before the grid's.
        position: config of what tells all tokens their positions, before the first block.
        peg: config of a token part that does so behind a block, such as :class:`vt.models.PEG`.
        peg_blocks: how many of the first blocks have one behind them; 1 by default.
        tied: a part of every block, by its name in it, of which the stage has one (P2T's convolutions).
        norm: normalise what leaves the stage; or a config of another normalisation than the blocks'.
        norm_cfg: the normalisation, the blocks' too.
        block: what the blocks have in common; ``attention`` and others are a config, or a list of configs that the
            blocks take in turn. So is ``drop_path``, a number or a list, which stands in the place of ``drop_paths``.
    """

    def __init__(
        self,
        in_channels: int,
        size: Size,
        channels: int,
        depth: int,
        drop_paths: Sequence[float],
        embed: dict | None = None,
        class_tokens: int = 0,
        position: dict | None = None,
        peg: dict | None = None,
        peg_blocks: int | None = None,
        tied: str | None = None,
        norm: bool | dict = False,
        norm_cfg: dict = NORM,
        **block: Any,
    ) -> None:
        super().__init__()
        widths = dict(in_channels=in_channels, channels=channels)
        self.embed = build_part(embed, **widths) if embed else SameTokens()
        self.size = _grid(self.embed, in_channels, size) if embed else size
        if not embed and channels != in_channels:
            raise UserError(f'Stage: channels={channels} without embed, but {in_channels} come in; give an embed')
        self.class_tokens = nn.Parameter(torch.zeros(1, class_tokens, channels)) if class_tokens else None
        require_with('Stage', 'peg_blocks', peg_blocks, peg=peg)
        grid = dict(channels=channels, size=self.size, num_class_tokens=class_tokens)
        self.position = optional_part(position, **grid)
        check_tokens(self.position, **grid)
        self.blocks = nn.ModuleList()
        self.out_channels, self.out_size = channels, self.size
        block = dict(type='vt.Block', norm_cfg=norm_cfg, drop_path=list(drop_paths)) | block
        for index in range(depth):
            own = {key: value[index % len(value)] if isinstance(value, list) else value for key, value in block.items()}
            own |= {part: dict(type=name) | own.get(part, {}) for part, name in PARTS.items()}
            grown = dict(channels=self.out_channels, size=self.out_size)
            self.blocks.append(build_part(own | grown))
            self.out_channels = self.blocks[-1].out_channels
            self.out_size = self.blocks[-1].out_size(self.out_size)
        if tied:
            owner, name = tied.rsplit('.', 1)
            for each in self.blocks[1:]:
                setattr(each.get_submodule(owner), name, self.blocks[0].get_submodule(tied))
        self.peg = nn.ModuleList(
            optional_part(peg if index < (peg_blocks or 1) else None, channels=channels) for index in range(depth)
        )
        last = norm if isinstance(norm, dict) else norm_cfg
        self.norm = build_norm_layer(last, self.out_channels)[1] if norm else nn.Identity()
        if self.class_tokens is not None:
            nn.init.trunc_normal_(self.class_tokens, std=0.02)

    def forward(
        self, x: Tensor, size: Size, with_cp: bool = False, classes: list[Tensor] | None = None
    ) -> tuple[Tensor, Size]:
        """A map or, without an embedding, tokens, to tokens ``(N, K + P, C)`` and the size of their grid.

        ``classes`` takes the class token ``(N, C)`` of each block.
        """
        x, size = self.embed(x, size) if self.embed.takes_tokens else self.embed(x)  # N, P, C
        if self.class_tokens is not None:
            x = torch.cat([self.class_tokens.expand(x.shape[0], -1, -1), x], dim=1)  # N, K + P, C
        x = self.position(x, size)  # N, K + P, C
        for block, peg in zip(self.blocks, self.peg):
            x = checkpoint(block, x, size, use_reentrant=False) if with_cp and x.requires_grad else block(x, size)
            size = block.out_size(size)
            x = peg(x, size)  # N, K + P, C
            if classes is not None:
                classes.append(x[:, 0])
        return self.norm(x), size


def _grid(embed: nn.Module, in_channels: int, size: Size) -> Size:
    """Size of the grid that an embedding makes of a map; nothing is computed."""
    if hasattr(embed, 'out_size'):
        return embed.out_size(size)
    skeleton = copy.deepcopy(embed).to('meta').eval()
    return tuple(skeleton(torch.empty(1, in_channels, *size, device='meta'))[1])
