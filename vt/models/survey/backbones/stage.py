"""A stage of a vision transformer: embedding, positions and blocks.

Letters: N batch, K class tokens, P tokens of the stage's grid, C channels.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from mmcv.cnn import build_norm_layer
from torch import Tensor, nn

from vt.models.checks import build_part, check_tokens, optional_part, require_with
from vt.models.grid import Size, TokenPart
from vt.models.recomputation import recompute

NORM = dict(type='LN', eps=1e-6)
PARTS = dict(attention='vt.Attention', feed_forward='vt.FeedForward')  # default types


class SameTokens(TokenPart):
    """Placeholder for a stage without an embedding: pass on the tokens of the previous stage."""

    takes_tokens = True

    def forward(self, x: Tensor, size: Size) -> tuple[Tensor, Size]:
        return x, size


class Stage(nn.Module):
    """A stage: embedding of the input map, class tokens, positions, blocks and a final normalisation.

    Args:
        in_channels: channels of the input map.
        size: size of the input map during training.
        channels: C; blocks may widen it.
        depth: number of blocks.
        drop_paths: stochastic depth rate of each block.
        embed: config of the embedding; None to use the tokens of the previous stage.
        class_tokens: K, number of learned tokens placed before those of the grid.
        position: config of the position embedding, applied before the first block.
        peg: config of a token part applied after a block, such as :class:`vt.models.PEG`.
        peg_blocks: number of blocks, from the first, that ``peg`` is applied after; 1 by default.
        tied: dotted name of a submodule of the blocks that all blocks of the stage share (P2T's convolutions).
        norm: normalise the output of the stage; a dict is a config other than ``norm_cfg``.
        norm_cfg: config of the normalisation of the blocks and the output.
        **block: options of all blocks. A list, such as a list of ``attention`` configs, is assigned to the blocks in
            turn; ``drop_path``, a number or a list, replaces ``drop_paths``.

    Raises:
        UserError: ``peg_blocks`` without ``peg``.
    """

    blocks: Any  # nn.ModuleList of parts with out_channels and out_size

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
        self.class_tokens = nn.Parameter(torch.zeros(1, class_tokens, channels)) if class_tokens else None
        require_with('Stage', 'peg_blocks', peg_blocks, peg=peg)
        grid = dict(channels=channels, size=self.size, num_class_tokens=class_tokens)
        self.position = optional_part(position, **grid)
        check_tokens(self.position, **grid)
        self.blocks = nn.ModuleList()
        self.out_channels, self.out_size = channels, self.size
        block = dict(type='vt.Block', norm_cfg=norm_cfg, drop_path=list(drop_paths)) | block
        for index in range(depth):
            own: Any = {key: each[index % len(each)] if isinstance(each, list) else each for key, each in block.items()}
            own |= {part: dict(type=name) | own.get(part, {}) for part, name in PARTS.items()}
            grown = dict(channels=self.out_channels, size=self.out_size)
            built: Any = build_part(own | grown)
            self.blocks.append(built)
            self.out_channels, self.out_size = built.out_channels, built.out_size(self.out_size)
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
        """Run the stage.

        Args:
            x: map ``(N, in_channels, H, W)``, or tokens if the stage has no embedding.
            size: grid size of the input.
            with_cp: recompute blocks in the backward pass to save memory.
            classes: list to which the class token ``(N, C)`` after each block is appended.

        Returns:
            Tokens ``(N, K + P, C)`` and the size of their grid.
        """
        x, size = self.embed(x, size) if self.embed.takes_tokens else self.embed(x)  # N, P, C
        if self.class_tokens is not None:
            x = torch.cat([self.class_tokens.expand(x.shape[0], -1, -1), x], dim=1)  # N, K + P, C
        x = self.position(x, size)  # N, K + P, C
        for block, peg in zip(self.blocks, self.peg):
            x = recompute(block, x, size) if with_cp and x.requires_grad else block(x, size)
            size = block.out_size(size)
            x = peg(x, size)  # N, K + P, C
            if classes is not None:
                classes.append(x[:, 0])
        return self.norm(x), size


def _grid(embed: Any, in_channels: int, size: Size) -> Size:
    """Grid size of an embedding's output, from its ``out_size`` or by shape inference on the meta device."""
    if hasattr(embed, 'out_size'):
        return embed.out_size(size)
    skeleton = copy.deepcopy(embed).to('meta').eval()
    return tuple(skeleton(torch.empty(1, in_channels, *size, device='meta'))[1])
