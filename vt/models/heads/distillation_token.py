"""A head for a class token, trained with labels, and a distillation token, trained with a teacher (DeiT, section 4).

Letters: N batch, C channels, K classes.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class DistillationTokenHead(LinearClsHead):
    """A linear classifier for each of two class tokens; predictions are the mean of their logits.

    The first token is trained with labels, the second with the teacher, by :class:`vt.DistilledClassifier`.

    Args:
        num_classes: K.
        in_channels: C.
        init_cfg: as in mmengine.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, init_cfg: dict | None = None, **head) -> None:
        init_cfg = init_cfg or dict(type='TruncNormal', layer='Linear', std=0.02)
        super().__init__(num_classes, in_channels, init_cfg=init_cfg, **head)
        self.fc_distillation = nn.Linear(in_channels, num_classes)

    def label_logits(self, feats: tuple) -> Tensor:
        """Logits of the class token, ``(N, K)``."""
        return self.fc(feats[-1][0])

    def distillation_logits(self, feats: tuple) -> Tensor:
        """Logits of the distillation token, ``(N, K)``."""
        return self.fc_distillation(feats[-1][1])

    def forward(self, feats: tuple) -> Tensor:
        """Outputs of the backbone, the last of which is the two tokens, to logits ``(N, K)``.

        In training they are those of the first token.
        """
        by_labels = self.label_logits(feats)
        return by_labels if self.training else (by_labels + self.distillation_logits(feats)) / 2
