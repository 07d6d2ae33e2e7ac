"""An image classifier trained by knowledge distillation (paper, section 5.2; Hinton et al., 2015).

Letters: N batch, K classes.
"""

from typing import Any

import torch
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div

from vt.errors import UserError
from vt.registry import MODELS

from .teacher import Teacher


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """MMPretrain's image classifier, trained with labels and a frozen teacher.

    The loss is ``cls_weight * the head's loss + distillation_weight * KL(teacher || student)``; the log shows both
    terms. With ``hard``, the cross-entropy with the teacher's predicted class replaces KL (DeiT, equation 3). If the
    head has a method ``distillation_logits``, such as :class:`vt.models.DistillationTokenHead`, its result is compared
    with the teacher, otherwise the head's logits. Checkpoints have the keys of ``ImageClassifier`` and load into it.

    The teacher is not a submodule: checkpoints, weight averaging, optimizers, DDP and FLOP counters do not include it.
    It follows the model to another device or precision at the next batch. It is built and checked by ``init_weights``,
    which mmengine's runners call before training, or else by the first loss. Testing needs neither its weights nor its
    package. Copies of the model build their own teacher.

    Args:
        teacher: config of the teacher, whose weights are frozen; for its normalisation see :class:`Teacher`.
        teacher_checkpoint: path or URL of its weights; None if timm provides them.
        teacher_size: size to which images are resized for the teacher; None for no resizing.
        distillation_weight: weight of the distillation loss.
        cls_weight: weight of the head's loss.
        temperature: T of :func:`distillation_loss`; the paper gives none.
        hard: use the teacher's predicted class instead of its probabilities.
        **classifier: options of :class:`mmpretrain.models.ImageClassifier`; the head must return logits.

    Raises:
        UserError: ``temperature`` is set with ``hard``; when the teacher is built, the errors of :class:`Teacher`.
    """

    head: Any

    def __init__(
        self,
        teacher: dict,
        teacher_checkpoint: str | None = None,
        teacher_size: int | tuple[int, int] | None = None,
        distillation_weight: float = 0.8,
        cls_weight: float = 0.2,
        temperature: float = 1.0,
        hard: bool = False,
        **classifier,
    ) -> None:
        super().__init__(**classifier)
        if hard and temperature != 1:
            raise UserError(f'DistilledClassifier: temperature={temperature} has no effect with hard=True; remove it')
        self.teacher_cfg = teacher
        self.teacher_checkpoint = teacher_checkpoint
        self.teacher_size = teacher_size
        self.distillation_weight = distillation_weight
        self.cls_weight = cls_weight
        self.temperature = temperature
        self.hard = hard
        self._teacher: list[Teacher] = []  # at most one; in a list, so that it is not a submodule

    def init_weights(self) -> None:
        """Initialise the student and build the teacher, whose errors then appear before training."""
        super().init_weights()
        if self.teacher_cfg:  # not in vt.apis.get_model
            self.build_teacher()

    def build_teacher(self) -> Teacher:
        """Return the teacher, on the device and in the precision of the model; the first call builds it."""
        if not self._teacher:
            num_classes = getattr(self.head, 'num_classes', None)
            self._teacher.append(
                Teacher(
                    self.teacher_cfg, self.teacher_checkpoint, self.teacher_size, self.data_preprocessor, num_classes
                )
            )
        parameter = next(self.parameters())
        return self._teacher[0].to(parameter.device, parameter.dtype)

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict[str, Tensor]:
        """Compute the two weighted losses, and the metrics of the head.

        Args:
            inputs: preprocessed images, ``(N, 3, height, width)``.
            data_samples: N samples with labels, or with scores of mixed images.

        Returns:
            A dict with the scalars ``loss_cls`` and ``loss_distillation``, in float32 at least; the loss is their sum.
        """
        features = self.extract_feat(inputs)
        seen: list[Tensor] = []

        def keep(head: nn.Module, args: tuple, output: Tensor) -> Tensor:
            seen.append(_at_least_float32(output))  # N, K
            return seen[0]

        # The head's loss calls the head. A second call would give logits with other entries dropped by dropout.
        with self.head.register_forward_hook(keep):
            losses = self.head.loss(features, data_samples)
        losses['loss_cls'] = self.cls_weight * losses.pop('loss')  # the log keeps the name 'loss' for the sum
        is_channels_last = inputs.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if is_channels_last else torch.contiguous_format
        teacher = self.build_teacher().to(memory_format=layout)
        own = getattr(self.head, 'distillation_logits', lambda _: seen[0])(features)
        if self.hard:
            distillation = cross_entropy(_at_least_float32(own), teacher(inputs).argmax(dim=-1))
        else:
            distillation = distillation_loss(own, teacher(inputs), self.temperature)
        losses['loss_distillation'] = self.distillation_weight * distillation
        return losses

    def __getstate__(self) -> dict:
        """State of copies and pickles: everything but the teacher."""
        return self.__dict__ | dict(_teacher=[])


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Kullback-Leibler divergence of the student's class probabilities from the teacher's.

    ``T^2 sum over K of p (log p - log q)``, averaged over the batch, where ``p = softmax(teacher / T)`` and
    ``q = softmax(student / T)``. T^2 keeps the scale of the gradients when T changes (Hinton et al., 2015, section 2).
    The gradient is that of the cross-entropy with p. DeiT's code also divides by K: divide weights taken from it by K.

    Args:
        student: logits of the student, ``(N, K)``.
        teacher: logits of the teacher, ``(N, K)``.
        temperature: T.

    Returns:
        A scalar, in float32 or float64 whatever the precision of the logits.
    """
    log_q = (_at_least_float32(student) / temperature).log_softmax(dim=-1)
    log_p = (_at_least_float32(teacher) / temperature).log_softmax(dim=-1)
    return temperature**2 * kl_div(log_q, log_p, reduction='batchmean', log_target=True)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
