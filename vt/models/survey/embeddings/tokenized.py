"""An embedding by a tokenizer: a few tokens from a map.

Letters: N batch, C channels, H and W map size, L tokens.
"""

from torch import Tensor

from vt.models.grid import Size, TokenPart
from vt.models.visual_transformers.pooling_tokenizer import nearest_square
from vt.registry import MODELS


@MODELS.register_module()
class TokenizerEmbed(TokenPart):
    """Use a tokenizer, such as TokenLearner or one of VT, as the embedding of a stage.

    L does not depend on the map size. The tokens have no positions; their grid is the most square one of L cells.

    Args:
        in_channels: channels of the map.
        channels: C.
        tokenizer: config of the tokenizer.
    """

    def __init__(self, in_channels: int, channels: int, tokenizer: dict) -> None:
        super().__init__()
        self.tokenizer = MODELS.build(tokenizer, default_args=dict(in_channels=in_channels, token_channels=channels))
        self.grid = nearest_square(self.tokenizer.num_tokens)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        """Map ``(N, in_channels, H, W)`` to tokens ``(N, L, C)`` and the size of their grid."""
        return self.tokenizer(x), self.grid
