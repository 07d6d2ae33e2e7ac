"""Token labeling: a label for the class token and one for each patch (LV-ViT; Jiang et al., NeurIPS 2021).

Letters: N batch, P = H * W patches, K classes.
"""

from typing import Any

import torch
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate, one_hot

from vt.models.checks import require_unused_loss, require_with
from vt.models.grid import Size, to_tokens
from vt.registry import MODELS

from .distilled import DistilledClassifier


@MODELS.register_module()
class TokenLabelClassifier(DistilledClassifier):
    """A classifier trained with token labels, which come from a teacher, or otherwise from the image label.

    The loss is ``CE(class token, label) + patch_weight * mean over patches of CE(patch, its label)`` (equation 3); the
    log shows both terms. After the embedding, a box of patches is replaced by that of another image of the batch
    (MixToken, section 3.3); the label of the class token is mixed in proportion, and each patch keeps the label of its
    image. The head needs a method ``patch_logits``, such as :class:`vt.models.TokenLabelHead`.

    Args:
        teacher: config of a classifier with global average pooling, whose head can be applied to single pixels; with
            None patches have the label of their image.
        patch_weight: weight of the loss of the patches.
        label_smoothing: s; targets are ``(1 - s) label + s / K``.
        teacher_checkpoint: path or URL of the teacher's weights; None if timm provides them.
        teacher_size: size to which images are resized for the teacher; None for no resizing.
        **classifier: options of :class:`mmpretrain.models.ImageClassifier`.

    Raises:
        UserError: a head with its own loss or accuracy; options of a teacher without a teacher.
    """

    backbone: Any

    def __init__(
        self,
        teacher: dict | None = None,
        patch_weight: float = 0.5,
        label_smoothing: float = 0.0,
        teacher_checkpoint: str | None = None,
        teacher_size: int | tuple[int, int] | None = None,
        **classifier,
    ) -> None:
        options = dict(teacher_checkpoint=teacher_checkpoint, teacher_size=teacher_size)
        for name, option in options.items():
            require_with('TokenLabelClassifier', name, option is not None, teacher=teacher)
        super().__init__(teacher or {}, distillation_weight=patch_weight, cls_weight=1.0, **options, **classifier)
        require_unused_loss('TokenLabelClassifier', self.head)
        self.label_smoothing = label_smoothing

    def build_teacher(self) -> Any:
        """Return the teacher; None without."""
        return super().build_teacher() if self.teacher_cfg else None

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict[str, Tensor]:
        """Compute the loss of the class token and the weighted loss of the patches.

        Args:
            inputs: preprocessed images, ``(N, 3, height, width)``.
            data_samples: N samples with labels, or with scores of mixed images.

        Returns:
            A dict with the scalars ``loss_cls`` and ``loss_patches``; the loss is their sum.
        """
        mixed: list[Tensor] = []
        sizes: list[Size] = []

        def mix(embed: nn.Module, args: tuple, output: tuple[Tensor, Size]) -> tuple[Tensor, Size]:
            tokens, size = output
            sizes.append(size)
            mixed.append(draw_box(size, tokens.device))
            return swap(tokens, mixed[0]), size

        with self.backbone.stages[0].embed.register_forward_hook(mix):
            features = self.extract_feat(inputs)
        box, labels = mixed[0], self._labels(data_samples)  # P; N, K
        share = box.to(labels).mean()
        scores, patches = self.head(features), swap(self.head.patch_logits(features), box)
        maps = self._patch_labels(inputs, labels, sizes[0]).float().expand_as(patches)
        labels = ((1 - share) * labels + share * labels.flip(0)).float()
        smoothing = dict(label_smoothing=self.label_smoothing)
        loss = cross_entropy(patches.float().flatten(0, 1), maps.flatten(0, 1), **smoothing)
        of_class = cross_entropy(scores.float(), labels, **smoothing)
        return dict(loss_cls=of_class, loss_patches=self.distillation_weight * loss)

    def _labels(self, data_samples: list[DataSample]) -> Tensor:
        """Class probabilities of the images, ``(N, K)``."""
        if 'gt_score' in data_samples[0]:
            return torch.stack([sample.gt_score for sample in data_samples])
        labels = torch.cat([sample.gt_label for sample in data_samples])
        return one_hot(labels, self.head.num_classes).to(next(self.parameters()))

    def _patch_labels(self, inputs: Tensor, labels: Tensor, size: Size) -> Tensor:
        """Class probabilities of each patch, ``(N, P, K)``, or the same for all patches, ``(N, 1, K)``."""
        teacher = self.build_teacher()
        if not teacher:
            return labels.unsqueeze(1)
        return to_tokens(interpolate(teacher.label_maps(inputs), size, mode='bilinear', align_corners=False))


def draw_box(size: Size, device: torch.device) -> Tensor:
    """Draw a random box whose share of the grid is uniform in [0, 1]; return a mask of its patches, ``(P,)``."""
    place, side = torch.rand(2).tolist(), torch.rand(1).item() ** 0.5
    inside = []
    for whole, middle in zip(size, place):
        half, middle = int(whole * side) // 2, int(whole * middle)
        inside.append((torch.arange(whole, device=device) - middle + 0.5).abs() < half)
    return (inside[0][:, None] & inside[1]).flatten()


def swap(x: Tensor, box: Tensor) -> Tensor:
    """Replace the tokens in a box by those of the reversed batch, ``(N, P, C)``; applied twice, it is the identity."""
    return torch.where(box[None, :, None], x.flip(0), x)
