"""A classifier of the class token and one of every patch (LV-ViT).

Letters: N batch, P patches, C channels, K classes.
"""

from mmpretrain.models.heads import LinearClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenLabelHead(LinearClsHead):
    """Two linear classifiers; a prediction is that of the class token and half of the patches' largest (LV-ViT).

    :class:`vt.TokenLabelClassifier` teaches the second one; without it labels teach the first one alone.

    Args:
        num_classes: K.
        in_channels: C.
        patch_weight: of the patches' largest logit in a prediction.
        init_cfg: as in mmengine.
        **head: other options of :class:`mmpretrain.models.heads.ClsHead`, such as ``loss`` and ``topk``.
    """

    def __init__(
        self, num_classes: int, in_channels: int, patch_weight: float = 0.5, init_cfg: dict | None = None, **head
    ) -> None:
        init_cfg = init_cfg or dict(type='TruncNormal', layer='Linear', std=0.02)
        super().__init__(num_classes, in_channels, init_cfg=init_cfg, **head)
        self.patch_weight = patch_weight
        self.fc_patches = nn.Linear(in_channels, num_classes)

    def patch_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What each patch says, ``(N, P, K)``."""
        return self.fc_patches(feats[-1][:, 1:])

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """The backbone's outputs, of which the last is all tokens, to scores ``(N, K)``."""
        # While training, the class token's alone, which the image's label teaches.
        scores = self.fc(feats[-1][:, 0])
        return scores if self.training else scores + self.patch_weight * self.patch_logits(feats).amax(dim=1)
