"""Normal cell of ViTAE: attention with parallel convolutions (Xu et al., NeurIPS 2021).

Letters: N batch, P tokens of the grid, C channels.
"""

from mmcv.cnn.bricks import DropPath
from torch import Tensor

from vt.models.grid import Size, to_map, to_tokens
from vt.models.survey.embeddings.reduction_cell import local_convolutions
from vt.registry import MODELS

from .block import Block


@MODELS.register_module()
class NormalCell(Block):
    """``x + attention(norm(x)) + convolutions(x)``, then the feed-forward (section 3.3).

    Args:
        channels: C.
        groups: channel groups of the three 3x3 convolutions.
        local_ratio: ratio of their hidden channels to C.
        *args, **kwargs: size, num_heads, attention, feed_forward, and other options of :class:`vt.models.Block`.
    """

    def __init__(self, channels: int, *args, groups: int, local_ratio: int = 3, **kwargs) -> None:
        super().__init__(channels, *args, **kwargs)
        hidden = channels * local_ratio
        norm = dict(type='BN')
        self.local = local_convolutions([channels, hidden, channels, channels], [norm, norm, None], groups=groups)
        self.local_drop_path = DropPath(kwargs.get('drop_path', 0.0))

    def forward(self, x: Tensor, size: Size) -> Tensor:
        """``(N, P, C)`` to ``(N, P, C)``."""
        local = self.local_drop_path(to_tokens(self.local(to_map(x, size))))
        return self.feed(x + self.attention(x, size) + local, size)
