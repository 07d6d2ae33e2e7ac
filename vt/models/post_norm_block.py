"""The block of the first transformer, which normalises sums.

Letters: N batch, K class tokens, P tokens of the grid, C channels.
"""

from mmcv.cnn import build_norm_layer
from torch import Tensor

from vt.errors import UserError
from vt.registry import MODELS

from .block import Block
from .grid import Size


@MODELS.register_module()
class PostNormBlock(Block):
    """``norm(x + attention(x))``, then ``norm(x + feed_forward(x))`` (Vaswani et al., 2017, section 3.1).

    Swin v2's norms, behind each part and before the sum, are ``post_norm`` of :class:`vt.models.Block`.

    Args:
        channels, others: as in :class:`vt.models.Block`, without ``between``.
        norm_cfg: the normalisation of both sums.

    Raises:
        UserError: a part between the two, ``post_norm`` too, or an attention of the class token alone.
    """

    takes_between = False

    def __init__(self, channels: int, *args, norm_cfg: dict, **kwargs) -> None:
        if kwargs.get('post_norm'):
            raise UserError('PostNormBlock: it norms the sums, and post_norm has no place in it; leave it out')
        super().__init__(channels, *args, norm_cfg=None, **kwargs)
        if self.class_token_only:
            raise UserError('PostNormBlock: its attention is of all tokens; ClassAttention wants type=vt.Block')
        self.attention_norm, self.feed_forward_norm = (build_norm_layer(norm_cfg, channels)[1] for _ in range(2))

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        x = self.attention_norm(x + self.attention(x, size))
        return self.feed_forward_norm(x + self.feed_forward(x, size))
