"""The post-norm block of the original transformer.

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

    For the residual post-normalisation of Swin v2, use ``post_norm`` of :class:`vt.models.Block`.

    Args:
        channels, others: as in :class:`vt.models.Block`, without ``between`` and ``post_norm``.
        norm_cfg: config of the normalisation of both sums.

    Raises:
        UserError: ``between`` or ``post_norm`` is set, or the attention updates the class token only.
    """

    takes_between = False

    def __init__(self, channels: int, *args, norm_cfg: dict, **kwargs) -> None:
        if kwargs.get('post_norm'):
            raise UserError('PostNormBlock: post_norm is not supported here; remove it, or use vt.Block')
        super().__init__(channels, *args, norm_cfg=None, **kwargs)
        if self.class_token_only:
            raise UserError('PostNormBlock: ClassAttention is not supported here; set type=vt.Block')
        self.attention_norm, self.feed_forward_norm = (build_norm_layer(norm_cfg, channels)[1] for _ in range(2))

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, K + P, C)`` to ``(N, K + P, C)``."""
        x = self.attention_norm(x + self.attention(x, size))
        return self.feed_forward_norm(x + self.feed_forward(x, size))
