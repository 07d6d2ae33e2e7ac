"""Classification heads that MMPretrain does not have.

Letters: N batch, P patches, C channels, K classes.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS

INIT = dict(type='TruncNormal', layer='Linear', std=0.02)


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


@MODELS.register_module()
class DistillationTokenHead(LinearClsHead):
    """A linear classifier for each of two class tokens; predictions are the mean of their logits.

    The first token is trained with labels, the second with the teacher, by :class:`vt.DistilledClassifier`.

    Args:
        num_classes: K.
        in_channels: C.
        init_cfg: as in mmengine; linear layers are drawn with a standard deviation of 0.02 by default.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, init_cfg: dict | None = None, **head) -> None:
        super().__init__(num_classes, in_channels, init_cfg=init_cfg or INIT, **head)
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


@MODELS.register_module()
class TokenLabelHead(LinearClsHead):
    """Two linear classifiers, of the class token and of the patches.

    Predictions are the logits of the class token plus half the maximum over the patches (LV-ViT). The
    second classifier is trained by :class:`vt.TokenLabelClassifier` only.

    Args:
        num_classes: K.
        in_channels: C.
        init_cfg: as in mmengine; linear layers are drawn with a standard deviation of 0.02 by default.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, init_cfg: dict | None = None, **head) -> None:
        super().__init__(num_classes, in_channels, init_cfg=init_cfg or INIT, **head)
        self.fc_patches = nn.Linear(in_channels, num_classes)

    def patch_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Logits of each patch, ``(N, P, K)``."""
        return self.fc_patches(feats[-1][:, 1:])

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of the backbone, the last of which is all tokens, to logits ``(N, K)``."""
        # In training: logits of the class token, which is trained with the label of the image.
        scores = self.fc(feats[-1][:, 0])
        return scores if self.training else scores + 0.5 * self.patch_logits(feats).amax(dim=1)
