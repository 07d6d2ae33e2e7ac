"""A block on a few tokens of the grid, which are written back to it.

Letters: N batch, P tokens of the grid, C channels, L few tokens.
"""

from torch import Tensor

from vt.registry import MODELS

from .block import Block
from .grid import Size, to_map, to_tokens
from .tokenizers.pooling import nearest_square


@MODELS.register_module()
class TokenizedBlock(Block):
    """``fuser(x, block(tokenizer(x)))``: TokenLearner and TokenFuser (Ryoo et al., 2021, section 2.3), or VT's parts.

    Args:
        channels: C.
        size: not used; every block is told it.
        num_heads: of the attention among the L tokens.
        tokenizer: config, called with a map.
        fuser: config, called with the map and the block's tokens.
        **block: as in :class:`vt.models.Block`.
    """

    takes_class_tokens = False

    def __init__(self, channels: int, size: Size, num_heads: int, tokenizer: dict, fuser: dict, **block) -> None:
        widths = dict(in_channels=channels, token_channels=channels)
        tokenizer = MODELS.build(tokenizer, default_args=widths)
        grid = nearest_square(tokenizer.num_tokens)
        super().__init__(channels, grid, num_heads, **block)
        self.grid = grid
        self.tokenizer = tokenizer
        self.fuser = MODELS.build(fuser, default_args=widths)

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        x = to_map(x, size)
        return to_tokens(self.fuser(x, super().forward(self.tokenizer(x), self.grid)))
