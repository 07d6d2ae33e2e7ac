"""A block on a few tokens, computed from the grid by a tokenizer and written back by a fuser.

Letters: N batch, P tokens of the grid, C channels, L tokens of the tokenizer.
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
        size: not used; accepted because every block gets it.
        num_heads: number of heads of the attention between the L tokens.
        tokenizer: config of the tokenizer, called with a map.
        fuser: config of the fuser, called with the map and the tokens of the block.
        **block: options of :class:`vt.models.Block`.
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
