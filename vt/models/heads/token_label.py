"""A classifier of the class token and one of every patch (LV-ViT).

Letters: N batch, P patches, C channels, K classes.
"""

from mmpretrain.models.heads import ClsHead
from torch import Tensor, nn

from vt.registry import MODELS


@MODELS.register_module()
class TokenLabelHead(ClsHead):
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
        super().__init__(init_cfg=init_cfg or dict(type='TruncNormal', layer='Linear', std=0.02), **head)
        self.num_classes = num_classes
        self.patch_weight = patch_weight
        self.fc = nn.Linear(in_channels, num_classes)
        self.fc_patches = nn.Linear(in_channels, num_classes)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """All tokens of the last stage, ``(N, 1 + P, C)``."""
        return feats[-1]

    def patch_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What each patch says, ``(N, P, K)``."""
        return self.fc_patches(self.pre_logits(feats)[:, 1:])

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """The backbone's outputs, of which the last is all tokens, to scores ``(N, K)``."""
        # While training, the class token's alone, which the image's label teaches.
        scores = self.fc(self.pre_logits(feats)[:, 0])
        return scores if self.training else scores + self.patch_weight * self.patch_logits(feats).amax(dim=1)
