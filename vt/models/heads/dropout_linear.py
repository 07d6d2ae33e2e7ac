"""MMPretrain's linear classifier with dropout before it.

Letters: N batch, C channels.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class DropoutLinearClsHead(LinearClsHead):
    """A linear head whose input is dropped out; its weights are named as :class:`mmpretrain.models.LinearClsHead`'s.

    Args:
        num_classes: classes.
        in_channels: C.
        dropout: probability to drop a channel of a feature (paper, section 5.2: 0.2).
        **head: other options of ``LinearClsHead``, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, dropout: float = 0.2, **head) -> None:
        super().__init__(num_classes, in_channels, **head)
        self.dropout = nn.Dropout(dropout)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """The last feature, ``(N, C)``, as the linear layer sees it."""
        return self.dropout(super().pre_logits(feats))
