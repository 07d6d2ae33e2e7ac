"""A class token that learns from labels and one that learns from a teacher (DeiT, section 4).

Letters: N batch, C channels, K classes.
"""

from mmpretrain.models.heads import LinearClsHead
from mmpretrain.structures import DataSample
from torch import Tensor, cat, nn

from vt.registry import MODELS


@MODELS.register_module()
class DistillationTokenHead(LinearClsHead):
    """A linear classifier for each of two class tokens; their mean predicts.

    :class:`vt.DistilledClassifier` compares the second one with the teacher; labels teach the first one alone.

    Args:
        num_classes: K.
        in_channels: C.
        labels_teach_both: without a teacher: two class tokens with one target, whose losses are averaged.
        init_cfg: as in mmengine.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(
        self, num_classes: int, in_channels: int, labels_teach_both: bool = False, init_cfg: dict | None = None, **head
    ) -> None:
        init_cfg = init_cfg or dict(type='TruncNormal', layer='Linear', std=0.02)
        super().__init__(num_classes, in_channels, init_cfg=init_cfg, **head)
        self.labels_teach_both = labels_teach_both
        self.fc_distillation = nn.Linear(in_channels, num_classes)

    def label_logits(self, feats: tuple) -> Tensor:
        """What the class token says, ``(N, K)``."""
        return self.fc(feats[-1][0])

    def distillation_logits(self, feats: tuple) -> Tensor:
        """What the distillation token says, ``(N, K)``."""
        return self.fc_distillation(feats[-1][1])

    def forward(self, feats: tuple) -> Tensor:
        """The backbone's outputs, of which the last is the two tokens, to scores ``(N, K)``."""
        by_labels = self.label_logits(feats)
        if not self.training:
            return (by_labels + self.distillation_logits(feats)) / 2
        # While training, those of the class tokens that the labels teach, one below the other.
        return cat([by_labels, self.distillation_logits(feats)]) if self.labels_teach_both else by_labels

    def loss(self, feats: tuple, data_samples: list[DataSample], **options) -> dict[str, Tensor]:
        """The loss of what the labels teach."""
        return super().loss(feats, data_samples * (2 if self.labels_teach_both else 1), **options)
