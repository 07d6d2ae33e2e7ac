"""Checks of a run before it starts."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import nn
from torch.utils.data import Dataset

from vt.engine.errors.messages import NO_BATCH
from vt.registry import HOOKS


@HOOKS.register_module()
class NumClassesHook(Hook):
    """Stop before the first iteration where a head and a data set disagree on the number of classes.

    Without it a label out of range ends in an index error deep in the loss, and a head with too many classes trains
    unnoticed; so do epochs without a batch.
    """

    def before_train(self, runner: Runner) -> None:
        if isinstance(runner.train_loop, EpochBasedTrainLoop) and len(runner.train_dataloader) == 0:
            raise ValueError(NO_BATCH)
        check_num_classes(runner.model, runner.train_dataloader.dataset)

    def before_val(self, runner: Runner) -> None:
        check_num_classes(runner.model, runner.val_dataloader.dataset)

    def before_test(self, runner: Runner) -> None:
        check_num_classes(runner.model, runner.test_dataloader.dataset)


def check_num_classes(model: nn.Module, dataset: Dataset) -> None:
    """Compare every ``num_classes`` of the model with the classes, or else the labels, of a data set.

    Raises:
        ValueError: they differ.
    """
    model = model.module if is_model_wrapper(model) else model
    num_classes, plural = _count_classes(dataset)
    while hasattr(dataset, 'dataset'):  # a wrapper's name tells nothing
        dataset = dataset.dataset
    for name, part in model.named_modules():
        own = getattr(part, 'num_classes', None)
        if not isinstance(own, int):
            continue
        if own != num_classes if plural == 'classes' else own < num_classes:
            raise ValueError(
                f'model.{name} has num_classes={own}, but the {type(dataset).__name__} data set has {num_classes} '
                f'{plural}; set model.{name}.num_classes={num_classes} in the config'
            )


def _count_classes(dataset: Dataset) -> tuple[int, str]:
    """The number of named classes; where none are named, one more than the largest label."""
    classes = getattr(dataset, 'metainfo', {}).get('classes')
    if classes is not None:
        return len(classes), 'classes'
    return int(max(dataset.get_gt_labels(), default=-1)) + 1, 'labels'
