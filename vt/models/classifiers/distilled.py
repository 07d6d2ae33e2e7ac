"""Knowledge distillation as a classifier (paper, section 5.2; Hinton et al., 2015).

Letters: N batch, K classes.
"""

import torch
import torch.nn.functional as F
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

from .teacher import Teacher


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """MMPretrain's image classifier that learns from a frozen teacher too.

    The loss is ``distillation_weight * KL(teacher || student) + cls_weight * the head's loss``, two entries of the
    log; with ``hard``, the cross-entropy with the teacher's decision stands in KL's place (DeiT, equation 3). A head
    with ``distillation_logits``, such as :class:`vt.models.DistillationTokenHead`, says what the teacher is compared
    with. Everything else is ``ImageClassifier``'s, and so are the names in checkpoints: each loads the other's.

    The teacher is no part of the model, only in its reach: it is not among its modules, parameters and tensors, so
    neither checkpoints, nor averages of weights, nor optimizers, nor DDP, nor counters of FLOPs see it. With the next
    batch it follows the model to a device or precision. It is built and checked by ``init_weights``, which mmengine's
    runners call before they train, or else by the first loss; a test needs neither its weights nor its package. A copy
    of the model has none until then.

    Args:
        teacher: config of the teacher, see :class:`Teacher` for its normalisation. Its weights are frozen.
        teacher_checkpoint: path or address of its weights; None where timm brings them.
        teacher_size: size that images are resized to for the teacher; None leaves them as they are.
        distillation_weight: weight of the distillation loss.
        cls_weight: weight of the head's loss.
        temperature: T, see :func:`distillation_loss`; the paper gives none.
        hard: learn the teacher's decision instead of its probabilities.
        **classifier: options of :class:`mmpretrain.models.ImageClassifier`. The head is one of logits.

    Raises:
        UserError: a negative weight, a temperature that is not positive, or one for a hard decision, which has none.
            When the teacher is built, what :class:`Teacher` raises.
    """

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
        if min(distillation_weight, cls_weight) < 0 or temperature <= 0:
            raise UserError(
                f'DistilledClassifier: distillation_weight={distillation_weight} and cls_weight={cls_weight} must not '
                f'be negative, temperature={temperature} must be positive'
            )
        if hard and temperature != 1:
            raise UserError(f'DistilledClassifier: hard=True leaves temperature={temperature} without effect')
        self.teacher_cfg = teacher
        self.teacher_checkpoint = teacher_checkpoint
        self.teacher_size = teacher_size
        self.distillation_weight = distillation_weight
        self.cls_weight = cls_weight
        self.temperature = temperature
        self.hard = hard
        self._teacher: list[Teacher] = []  # a list, which is not a module: none or one

    def init_weights(self) -> None:
        """Initialise the student, and build the teacher, so that what is wrong with it is said before training."""
        super().init_weights()
        self.build_teacher()

    def build_teacher(self) -> Teacher:
        """The teacher, where the model is and in its precision; it is built and checked when it is first asked for."""
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
        """The two losses, weighted, and what else the head reports.

        Args:
            inputs: images as the data preprocessor gives them, ``(N, 3, height, width)``.
            data_samples: N samples with labels, or with scores of mixed images.

        Returns:
            ``loss_cls`` and ``loss_distillation``, scalars in float32 or better; their sum is the loss.
        """
        features = self.extract_feat(inputs)
        seen: list[Tensor] = []

        def keep(head: nn.Module, args: tuple, output: Tensor) -> Tensor:
            seen.append(_at_least_float32(output))  # N, K
            return seen[0]

        # The head's loss calls the head. To call it here too would give logits with other entries dropped.
        with self.head.register_forward_hook(keep):
            losses = self.head.loss(features, data_samples)
        losses['loss_cls'] = self.cls_weight * losses.pop('loss')  # the log keeps the name 'loss' for the sum
        is_channels_last = inputs.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if is_channels_last else torch.contiguous_format
        teacher = self.build_teacher().to(memory_format=layout)
        own = getattr(self.head, 'distillation_logits', lambda _: seen[0])(features)
        if self.hard:
            distillation = F.cross_entropy(_at_least_float32(own), teacher(inputs).argmax(dim=-1))
        else:
            distillation = distillation_loss(own, teacher(inputs), self.temperature)
        losses['loss_distillation'] = self.distillation_weight * distillation
        return losses

    def __getstate__(self) -> dict:
        """What a copy or a pickle holds: all but the teacher."""
        return self.__dict__ | dict(_teacher=[])


def distillation_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Kullback-Leibler divergence of the student's probabilities from the teacher's.

    ``T^2 sum over K of p (log p - log q)``, averaged over the batch, where ``p = softmax(teacher / T)`` and
    ``q = softmax(student / T)``. T^2 keeps the size of gradients when T changes (Hinton et al., 2015, section 2).
    Its gradient is that of the cross-entropy with p; it is zero where the two agree. DeiT's code divides it by K, too:
    a weight that is copied from there must be divided by K.

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
