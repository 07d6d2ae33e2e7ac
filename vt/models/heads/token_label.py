"""A head with a classifier for the class token and one for the patches (LV-ViT).

Letters: N batch, P patches, C channels, K classes.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenLabelHead(LinearClsHead):
    """Two linear classifiers, of the class token and of the patches.

    Predictions are the logits of the class token plus half the maximum over the patches (LV-ViT). The
    second classifier is trained by :class:`vt.TokenLabelClassifier` only.

    Args:
        num_classes: K.
        in_channels: C.
        init_cfg: as in mmengine.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(self, num_classes: int, in_channels: int, init_cfg: dict | None = None, **head) -> None:
        init_cfg = init_cfg or dict(type='TruncNormal', layer='Linear', std=0.02)
        super().__init__(num_classes, in_channels, init_cfg=init_cfg, **head)
        self.fc_patches = nn.Linear(in_channels, num_classes)

    def patch_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Logits of each patch, ``(N, P, K)``."""
        return self.fc_patches(feats[-1][:, 1:])

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of the backbone, the last of which is all tokens, to logits ``(N, K)``."""
        # In training: logits of the class token, which is trained with the label of the image.
        scores = self.fc(feats[-1][:, 0])
        return scores if self.training else scores + 0.5 * self.patch_logits(feats).amax(dim=1)
