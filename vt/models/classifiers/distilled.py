"""Knowledge distillation as a classifier (paper, section 5.2; Hinton et al., 2015).

Letters: N batch, K classes.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor

from vt.errors import UserError
from vt.registry import MODELS

from .teacher import Teacher


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """MMPretrain's image classifier that learns from a frozen teacher too.

    The loss is ``distillation_weight * KL(teacher || student) + cls_weight * the head's loss``, two entries of the
    log. Everything else is ``ImageClassifier``'s, and so are the names in checkpoints: each loads the other's.

    The teacher is no part of the model, only in its reach: it is not among its modules, parameters and tensors, so
    neither checkpoints, nor averages of weights, nor optimizers, nor DDP, nor counters of FLOPs see it. It follows the
    model to a device or precision. It is built and checked by ``init_weights``, which mmengine's runners call before
    they train, or else by the first loss; a test needs neither its weights nor its package. A copy of the model has
    none until then.

    Args:
        teacher: config of the teacher, see :class:`Teacher` for its normalisation. Its weights are frozen.
        teacher_checkpoint: path or address of its weights; None where timm brings them.
        teacher_size: size that images are resized to for the teacher; None leaves them as they are.
        distillation_weight: weight of the distillation loss.
        cls_weight: weight of the head's loss.
        temperature: T, see :func:`distillation_loss`; the paper gives none.
        **classifier: options of :class:`mmpretrain.models.ImageClassifier`. The head is one of logits.

    Raises:
        UserError: a negative weight, or a temperature that is not positive. When the teacher is built, what
            :class:`Teacher` raises.
    """

    def __init__(
        self,
        teacher: dict,
        teacher_checkpoint: str | None = None,
        teacher_size: int | tuple[int, int] | None = None,
        distillation_weight: float = 0.8,
        cls_weight: float = 0.2,
        temperature: float = 1.0,
        **classifier,
    ) -> None:
        super().__init__(**classifier)
        if min(distillation_weight, cls_weight) < 0 or temperature <= 0:
            raise UserError(
                f'DistilledClassifier: distillation_weight={distillation_weight} and cls_weight={cls_weight} must not '
                f'be negative, temperature={temperature} must be positive'
            )
        self.teacher_cfg = teacher
        self.teacher_checkpoint = teacher_checkpoint
        self.teacher_size = teacher_size
        self.distillation_weight = distillation_weight
        self.cls_weight = cls_weight
        self.temperature = temperature
        self._teacher: list[Teacher] = []  # a list, which is not a module: none or one

    def init_weights(self) -> None:
        """Initialise the student, and build the teacher, so that what is wrong with it is said before training."""
        super().init_weights()
        self.build_teacher()

    def build_teacher(self) -> Teacher:
        """The teacher; it is built, loaded and checked when it is first asked for."""
        if not self._teacher:
            parameter = next(self.parameters())
            num_classes = getattr(self.head, 'num_classes', None)
            teacher = Teacher(
                self.teacher_cfg, self.teacher_checkpoint, self.teacher_size, self.data_preprocessor, num_classes
            )
            self._teacher.append(teacher.to(parameter.device, parameter.dtype))
        return self._teacher[0]

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict[str, Tensor]:
        """The two losses, weighted, and what else the head reports.

        Args:
            inputs: images as the data preprocessor gives them, ``(N, 3, height, width)``.
            data_samples: N samples with labels, or with scores of mixed images.

        Returns:
            ``loss_cls`` and ``loss_distillation``, scalars in float32 or better; their sum is the loss.
        """
        logits = _at_least_float32(self.head(self.extract_feat(inputs)))  # N, K
        # The head's loss() would compute logits of its own, with other entries dropped.
        losses = self.head._get_loss(logits, data_samples)
        losses['loss_cls'] = self.cls_weight * losses.pop('loss')  # the log keeps the name 'loss' for the sum
        distillation = distillation_loss(logits, self.build_teacher()(inputs), self.temperature)
        losses['loss_distillation'] = self.distillation_weight * distillation
        return losses

    def _apply(self, fn: Callable, recurse: bool = True) -> 'DistilledClassifier':
        """Move or cast the model, as ``to()``, ``cuda()`` and ``double()`` do; the teacher follows."""
        for teacher in self._teacher:
            teacher._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict:
        """What a copy or a pickle holds: all but the teacher."""
        return self.__dict__ | dict(_teacher=[])


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Kullback-Leibler divergence of the student's probabilities from the teacher's.

    ``T^2 sum over K of p (log p - log q)``, averaged over the batch, where ``p = softmax(teacher / T)`` and
    ``q = softmax(student / T)``. T^2 keeps the size of gradients when T changes (Hinton et al., 2015, section 2).
    Its gradient is that of the cross-entropy with p; it is zero where the two agree.

    Args:
        student: logits, ``(N, K)``.
        teacher: logits, ``(N, K)``.
        temperature: T.

    Returns:
        A scalar in float32 or better, whatever the precision of the logits.
    """
    log_q = (_at_least_float32(student) / temperature).log_softmax(dim=-1)
    log_p = (_at_least_float32(teacher) / temperature).log_softmax(dim=-1)
    return temperature**2 * F.kl_div(log_q, log_p, reduction='batchmean', log_target=True)


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
