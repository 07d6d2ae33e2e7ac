"""The loss of the validation data, as a score of each validation."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.utils import apply_to
from torch import Tensor, nn

from vt.checkpoints.weights import unwrap
from vt.errors import UserError
from vt.registry import HOOKS


@HOOKS.register_module()
class ValidationLossHook(Hook):
    """Add ``val/loss`` to the scores of validations: the mean over samples of the loss of the model's head.

    The model is in evaluation mode and is not called again. Each sample's loss is computed by itself, so the mean does
    not depend on batches or processes. Auxiliary heads and a teacher do not count.

    Raises:
        UserError: there is no validation, or the model has no logits of single samples.
    """

    def before_train(self, runner: Runner) -> None:
        """Add the score, before the dry run."""
        if runner.val_loop is None or runner.cfg.get('fsdp'):
            raise UserError('vt.ValidationLossHook requires validation, and does not support fsdp: remove the hook')
        runner.val_loop.evaluator.metrics.append(HeadLoss(unwrap(runner.model)))


class HeadLoss(BaseMetric):
    """Mean over samples of the loss of a classifier's head, or of a segmentor's decode head.

    Args:
        model: the model, without a wrapper.
        **kwargs: options of :class:`mmengine.evaluator.BaseMetric`.
    """

    default_prefix = 'val'

    def __init__(self, model: Any, **kwargs) -> None:
        super().__init__(**kwargs)
        self.model, self.features = model, None
        if hasattr(model, 'head'):
            model.head.register_forward_pre_hook(self._keep)

    def __deepcopy__(self, memo: dict) -> 'HeadLoss':
        """Itself, since a copy of the model would see no features; results do not outlast an evaluation."""
        return self

    def process(self, data_batch: dict[str, Any], data_samples: Sequence[dict]) -> None:
        """Compute the losses of a batch."""
        device = next(self.model.parameters()).device
        labels = [sample.to(device) for sample in data_batch['data_samples']]
        losses = self._of_features(labels) if hasattr(self.model, 'head') else self._of_maps(labels, data_samples)
        self.results += torch.stack([self.model.parse_losses(each)[0] for each in losses]).tolist()

    def compute_metrics(self, results: list[float]) -> dict[str, float]:
        """The mean of all samples."""
        return dict(loss=sum(results) / len(results))

    def _keep(self, head: nn.Module, args: tuple) -> None:
        self.features = None if head.training else args[0]

    def _of_features(self, labels: list) -> list[dict[str, Tensor]]:
        features, self.features = self.features, None
        sizes: list[int] = []
        apply_to(features, torch.is_tensor, lambda each: sizes.append(len(each)))
        if {*sizes} != {len(labels)}:
            raise UserError('vt.ValidationLossHook requires one view of each sample: set num_clips=1 and one crop')
        return [self.model.head.loss(_sample(features, index), [label]) for index, label in enumerate(labels)]

    def _of_maps(self, labels: list, predictions: Sequence[dict]) -> list[dict[str, Tensor]]:
        head = self.model.decode_head
        if head.out_channels == 1 or 'seg_logits' not in predictions[0]:
            raise UserError('vt.ValidationLossHook requires logits of each class for whole images: remove the hook')
        return [
            head.loss_by_feat(_sample(each['seg_logits']['data'][None], 0), [label])
            for each, label in zip(predictions, labels)
        ]


def _sample(features: Any, index: int) -> Any:
    """Return the features of one sample as a batch, in float32 at least."""
    return apply_to(
        features,
        torch.is_tensor,
        lambda each: each[index : index + 1].to(torch.promote_types(each.dtype, torch.float32)),
    )
