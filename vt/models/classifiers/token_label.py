"""Token labeling: the class token learns the image's label, each patch its own (LV-ViT; Jiang et al., NeurIPS 2021).

Letters: N batch, P = H * W patches, K classes.
"""

from pathlib import Path

import torch
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.nn.functional import interpolate, one_hot

from vt.checkpoints.loading import weights_only
from vt.errors import MissingFileError, UserError
from vt.registry import MODELS

from ..checks import require_unused_loss, require_with
from ..grid import Size, to_tokens
from .distilled import DistilledClassifier


@MODELS.register_module()
class TokenLabelClassifier(DistilledClassifier):
    """A classifier whose patches have labels: a teacher's of each place, those of a file, or the image's.

    The loss is ``CE(class token, label) + patch_weight * mean over patches of CE(patch, its label)`` (equation 3), two
    entries of the log. With ``mix_tokens`` a box of each image's patches is taken from another image of the batch,
    after the embedding; the class token's label is mixed as the patches are, and each patch keeps the label of its
    image (section 3.3). The head is one with ``patch_logits``, such as :class:`vt.models.TokenLabelHead`.

    Args:
        teacher: config of a classifier whose head takes an average of its map, and so each pixel; None for no teacher.
        label_file: of a tensor ``(images, K, h, w)`` of probabilities, by the images' numbers in the data set; the
            images must come as they were labelled. With neither, a patch has its image's label.
        patch_weight: of the patches' loss.
        mix_tokens: MixToken.
        label_smoothing: s; images and patches learn ``(1 - s) label + s / K``.
        teacher_checkpoint, teacher_size: as in :class:`DistilledClassifier`.
        **classifier: options of :class:`mmpretrain.models.ImageClassifier`.

    Raises:
        UserError: a teacher and a file together; a negative weight; a smoothing that is no share; a head without logits
            of patches, or with a loss or an accuracy of its own, which nothing reads; options of a teacher without one;
            mixing where the backbone's first stage has no embedding.
        MissingFileError: ``label_file`` is not there when training begins; a test doesn't need it.
    """

    def __init__(
        self,
        teacher: dict | None = None,
        label_file: str | None = None,
        patch_weight: float = 0.5,
        mix_tokens: bool = True,
        label_smoothing: float = 0.0,
        teacher_checkpoint: str | None = None,
        teacher_size: int | tuple[int, int] | None = None,
        **classifier,
    ) -> None:
        if label_file == '' or (teacher and label_file):
            raise UserError('TokenLabelClassifier: teacher and label_file together, or an empty one; leave out one')
        options = dict(teacher_checkpoint=teacher_checkpoint, teacher_size=teacher_size)
        for name, option in options.items():
            require_with('TokenLabelClassifier', name, option is not None, teacher=teacher)
        super().__init__(teacher or {}, distillation_weight=patch_weight, cls_weight=1.0, **options, **classifier)
        if not hasattr(self.head, 'patch_logits'):
            raise UserError(f'TokenLabelClassifier: {type(self.head).__name__} has no logits of patches: set another')
        require_unused_loss('TokenLabelClassifier', self.head)
        self.embed = [stage.embed for stage in getattr(self.backbone, 'stages', [])[:1] if hasattr(stage, 'embed')]
        if mix_tokens and not self.embed:
            raise UserError(
                f'TokenLabelClassifier: {type(self.backbone).__name__} has no stage with an embed, whose tokens '
                'mix_tokens mixes; set mix_tokens=False'
            )
        if not 0 <= label_smoothing < 1:
            raise UserError(f'TokenLabelClassifier: label_smoothing={label_smoothing} is not from 0 up to 1')
        self.label_smoothing = label_smoothing
        self.mix_tokens = mix_tokens
        self.label_file = label_file
        self.label_maps: list[Tensor] = []  # none or one, read when the teacher would be built

    def build_teacher(self) -> nn.Module | None:
        """The teacher, where there is one; where a file stands for it, the file is read."""
        if self.label_file and not self.label_maps:
            self.label_maps.append(read_label_maps(self.label_file, self.head.num_classes))
        return super().build_teacher() if self.teacher_cfg else None

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict[str, Tensor]:
        """The two losses, the patches' weighted.

        Args:
            inputs: images as the data preprocessor gives them, ``(N, 3, height, width)``.
            data_samples: N samples with labels, or with scores of mixed images.

        Returns:
            ``loss_cls`` and ``loss_patches``, scalars; their sum is the loss.
        """
        mixed: list[Tensor] = []
        sizes: list[Size] = []

        def mix(embed: nn.Module, args: tuple, output: tuple[Tensor, Size]) -> tuple[Tensor, Size]:
            tokens, size = output
            sizes.append(size)
            mixed.append(draw_box(size, tokens.device) if self.mix_tokens else torch.zeros(1, device=tokens.device) > 0)
            return swap(tokens, mixed[0]), size

        with self.embed[0].register_forward_hook(mix):
            features = self.extract_feat(inputs)
        box, labels = mixed[0], self._labels(data_samples)  # 1 or P; N, K
        share = box.to(labels).mean()
        scores, patches = self.head(features), swap(self.head.patch_logits(features), box)
        maps = smooth(self._patch_labels(inputs, data_samples, labels, sizes[0]), self.label_smoothing)
        labels = smooth(labels, self.label_smoothing)
        return dict(
            loss_cls=soft_cross_entropy(scores, (1 - share) * labels + share * labels.flip(0)),
            loss_patches=self.distillation_weight * soft_cross_entropy(patches, maps),
        )

    def _labels(self, data_samples: list[DataSample]) -> Tensor:
        """Probabilities of the images' classes, ``(N, K)``."""
        if 'gt_score' in data_samples[0]:
            return torch.stack([sample.gt_score for sample in data_samples])
        labels = torch.cat([sample.gt_label for sample in data_samples])
        return one_hot(labels, self.head.num_classes).to(next(self.parameters()))

    def _patch_labels(self, inputs: Tensor, data_samples: list[DataSample], labels: Tensor, size: Size) -> Tensor:
        """Probabilities of each patch's classes, ``(N, P, K)``, or of all patches alike, ``(N, 1, K)``."""
        teacher = self.build_teacher()
        if teacher:
            maps = teacher.label_maps(inputs)
        elif self.label_maps:
            numbers = [sample.sample_idx for sample in data_samples]
            if max(numbers) >= (length := len(self.label_maps[0])):
                raise UserError(
                    f'TokenLabelClassifier: label_file has {length} label maps, and image {max(numbers)} is asked for; '
                    'write it of the same images: tools/analysis/label_maps.py'
                )
            maps = self.label_maps[0][numbers].to(labels)
        else:
            return labels.unsqueeze(1)
        return to_tokens(interpolate(maps, size, mode='bilinear', align_corners=False))


def read_label_maps(path: str, num_classes: int) -> Tensor:
    """Probabilities ``(images, K, h, w)`` of a file of ``label_maps.py``; what is read of it is what is used."""
    if not Path(path).is_file():
        raise MissingFileError(f'there is no {path}: set model.label_file to the label maps, or give model.teacher')
    with weights_only():
        maps = torch.load(path, map_location='cpu', mmap=True)
    if not isinstance(maps, Tensor) or maps.dim() != 4 or maps.shape[1] != num_classes:
        found = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
        raise UserError(f'{path} is {found}, not a tensor (images, {num_classes}, h, w): set model.label_file to one')
    return maps


def draw_box(size: Size, device: torch.device) -> Tensor:
    """Which patches of a grid lie in a box of a random place and a share that is uniform from 0 to 1, ``(P,)``."""
    place, side = torch.rand(2).tolist(), torch.rand(1).item() ** 0.5
    inside = []
    for whole, middle in zip(size, place):
        half, middle = int(whole * side) // 2, int(whole * middle)
        inside.append((torch.arange(whole, device=device) - middle + 0.5).abs() < half)
    return (inside[0][:, None] & inside[1]).flatten()


def swap(x: Tensor, box: Tensor) -> Tensor:
    """Tokens ``(N, P, C)`` whose box comes from the batch the other way round; twice, they are as they were."""
    return torch.where(box[None, :, None], x.flip(0), x)


def smooth(labels: Tensor, share: float) -> Tensor:
    """Probabilities ``(..., K)`` of which a share goes to all classes alike."""
    return (1 - share) * labels + share / labels.shape[-1]


def soft_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with probabilities, ``(..., K)`` both, averaged over all else."""
    return -(labels * logits.float().log_softmax(dim=-1)).sum(dim=-1).mean()
