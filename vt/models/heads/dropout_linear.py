"""MMPretrain's linear classification head with dropout.

Letters: N batch, C channels.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class DropoutLinearClsHead(LinearClsHead):
    """A linear head with dropout on its input and the parameter names of :class:`mmpretrain.models.LinearClsHead`.

    Args:
        num_classes: number of classes.
        in_channels: C.
        dropout: dropout probability of the features (0.2 in the paper, section 5.2).
        **head: other options of ``LinearClsHead``, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, dropout: float = 0.2, **head) -> None:
        super().__init__(num_classes, in_channels, **head)
        self.dropout = nn.Dropout(dropout)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the input of the linear layer, ``(N, C)``."""
        return self.dropout(super().pre_logits(feats))
