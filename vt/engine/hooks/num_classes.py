"""Check that the heads of a model, its metrics and its data sets agree on the classes."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset

from vt.checkpoints.reading import Checkpoint
from vt.checkpoints.weights import unwrap
from vt.engine.config.check_settings import find_types
from vt.engine.config.parts import leaves
from vt.errors import UserError
from vt.files import read_names
from vt.registry import HOOKS
from vt.untrusted_text import folded, printable

HEADS = ('head', 'decode_head', 'auxiliary_head')
SHOWN = 3  # class names in a message
IGNORED_LABEL = 255  # label of pixels that count nowhere, unless a data set sets another one


@HOOKS.register_module()
class NumClassesHook(Hook):
    """Stop before the first iteration if heads, losses, metrics and data sets disagree on the classes.

    Without these checks a head with too many classes trains without notice. If a checkpoint has other class names than
    the data, a test is refused, and a training that starts from it logs a warning.
    """

    trained: tuple[str, ...] | None = None  # classes of the loaded checkpoint

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        self.trained = Checkpoint('', checkpoint).dataset_meta.get('classes')

    def before_train(self, runner: Runner) -> None:
        check_classes(runner.model, runner.train_dataloader.dataset)
        if runner.val_loop is not None:
            self.before_val(runner)
        if difference := self._compare(runner, runner.train_dataloader.dataset):
            runner.logger.warning(f'{difference}: the head starts from weights that were trained for other classes')

    def before_val(self, runner: Runner) -> None:
        check_classes(runner.model, runner.val_dataloader.dataset, runner.val_loop.evaluator.metrics)

    def before_test(self, runner: Runner) -> None:
        if difference := self._compare(runner, runner.test_dataloader.dataset):
            raise UserError(
                f'{difference}: scores would compare different classes; give the data set the class names of the '
                'checkpoint, in the same order'
            )
        check_classes(runner.model, runner.test_dataloader.dataset, runner.test_loop.evaluator.metrics)

    def _compare(self, runner: Runner, dataset: Dataset) -> str | None:
        classes, name = names_in(dataset), type(without_wrappers(dataset)).__name__
        if not (classes and self.trained):
            return None
        checkpoint = str(runner.cfg.get('load_from') or 'the checkpoint')
        return compare_with_checkpoint(classes, self.trained, checkpoint, f'the {name} data set')


def check_classes(model: nn.Module, dataset: Dataset, metrics: Sequence[BaseMetric] = ()) -> None:
    """Compare the heads of a model with the classes of a data set, and settings of losses and metrics with both.

    Raises:
        UserError: a head or Mixup has another number of classes, a part ignores another label than the data set, a
            metric is for the other number of labels per image, or a loss does not use its weights.
    """
    model, dataset, classes = unwrap(model), without_wrappers(dataset), names_in(dataset)
    for name, own in heads(model):
        if classes is not None and own != len(classes):
            where = (
                f'{name} has num_classes={own}, but the {type(dataset).__name__} data set has {len(classes)} classes'
            )
            raise UserError(f'{where}; set {name}.num_classes={len(classes)} in the config')
        preprocessor = getattr(model, 'data_preprocessor', None)
        mixed = getattr(preprocessor, 'num_classes', None) if getattr(preprocessor, 'batch_augments', None) else None
        if mixed not in (None, own):
            raise UserError(f'data_preprocessor.num_classes={mixed}, but {name} has {own}: set the same number')
    ignored = getattr(dataset, 'ignore_index', IGNORED_LABEL)
    parts: list[Any] = [*(getattr(model, name, None) for name in HEADS), *metrics]
    for part in parts if ignored != IGNORED_LABEL else ():
        if getattr(part, 'ignore_index', ignored) != ignored:
            words = f'{type(part).__name__} has ignore_index={part.ignore_index}, but the data set has {ignored}'
            raise UserError(f'{words}: set both to the ignored label in the masks')
    for metric in (metric for metric in metrics if hasattr(metric, 'several_labels')):  # of classifiers
        from mmpretrain.models import ClsHead, MultiLabelClsHead

        head = getattr(model, 'head', None)
        several = isinstance(head, MultiLabelClsHead)
        if metric.several_labels != several and isinstance(head, (ClsHead, MultiLabelClsHead)):
            words = f'the metric {type(metric).__name__} has several_labels={not several}, but the head predicts'
            kind = 'several labels' if several else 'one label'
            raise UserError(f'{words} {kind} per image: set several_labels={several}')
    for name, loss in model.named_modules():
        if getattr(loss, 'pos_weight', None) is not None and not getattr(loss, 'use_sigmoid', True):
            raise UserError(f'model.{name}.pos_weight has no effect on a softmax: set class_weight')


def names_in(dataset: Dataset) -> Sequence[str] | None:
    """Return the class names of a data set, by label; None if it has none."""
    return (getattr(without_wrappers(dataset), 'metainfo', None) or {}).get('classes')


def compare_with_checkpoint(classes: Sequence[str], trained: Sequence[str], name: str, where: str) -> str | None:
    """Describe the first difference between the class names of the data and of a checkpoint; None if they agree.

    Lists without a common name, such as lists in two languages, are assumed to be the same classes.

    Args:
        classes: class names of the data.
        trained: class names that the checkpoint was trained with.
        name: name of the checkpoint, for the message.
        where: name of the data or of the setting, for the message.
    """
    classes, trained = [*map(str, classes)], [*map(str, trained)]
    label = first_difference(classes, trained)
    if label is None:
        return None
    if len(classes) != len(trained):
        return f'{name} was trained with {len(trained)} classes ({list_names(trained)}), {where} has {len(classes)}'
    return f'{name} was trained with {trained[label]!r} as label {label}, {where} has {classes[label]!r}'


def classes_of(model: nn.Module, meta: dict, loaded: Checkpoint | None, has_new_head: bool = False) -> dict[str, Any]:
    """Return ``classes`` and ``palette`` of a model: those of its checkpoint, or of its data set.

    Args:
        model: the model.
        meta: metadata of its data set, which is not used if the model has another number of classes.
        loaded: its checkpoint.
        has_new_head: the head is not of the checkpoint, which may have names of another number of classes.

    Raises:
        UserError: the checkpoint has another number of names than the model has classes, or other names than the data.
    """
    own, name = (loaded.dataset_meta, loaded.name) if loaded else ({}, '')
    names, number = own.get('classes') or (), next((number for _, number in heads(model)), None)
    if number not in (None, len(meta.get('classes') or ())):
        meta = {}
    if names and number not in (None, len(names)):
        if not has_new_head:
            words = f'{len(names)} class names, but the model has {number} classes'
            raise UserError(f'dataset_meta.classes of {name} has {words}')
        own, names = {}, ()
    if difference := compare_with_checkpoint(meta.get('classes') or (), names, name, 'test_dataloader.dataset'):
        raise UserError(f'{difference}: correct the classes in the config, or use another checkpoint')
    meta = meta | own
    return {key: meta[key] for key in ('classes', 'palette') if meta.get(key)}


def names_in_config(cfg: Config) -> dict[str, Any]:
    """Return ``classes`` and ``palette`` of the test data by their config or their class, without building them."""
    tests = leaves((cfg.get('test_dataloader') or {}).get('dataset'))
    if not tests or 'saved_in' in cfg:
        return {}
    data, where = tests[0], 'test_dataloader.dataset'
    kind = data['type']
    kind = find_types(kind, cfg.get('default_scope') or 'mmpretrain', where)[0] if isinstance(kind, str) else kind
    own, given = getattr(kind, 'METAINFO', {}), data.get('metainfo') or {}
    classes = data.get('classes') or given.get('classes') or own.get('classes') or ()
    classes = read_names(classes) if isinstance(classes, str) else classes
    colours = dict(zip(own.get('classes', ()), own.get('palette', ())))
    palette = given.get('palette') or [colours[name] for name in classes if name in colours]
    meta = dict(classes=classes, palette=palette if len(palette) == len(classes) else ())
    return {key: value for key, value in meta.items() if value}


def first_difference(ours: Sequence[str], theirs: Sequence[str], translates: bool = True) -> int | None:
    """Return the first index at which two lists of class names differ; None if they agree.

    Case and Unicode normalisation are ignored. If one may translate the other, lists without a common name agree.
    """
    ours, theirs = ([*map(folded, names)] for names in (ours, theirs))
    differing = (label for label, (a, b) in enumerate(zip_longest(ours, theirs)) if a != b)
    return next(differing, None) if not translates or {*ours} & {*theirs} else None


def list_names(names: Sequence[str]) -> str:
    """Return the first names as text, and how many more there are."""
    shown = ', '.join(repr(printable(name, 60)) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f'{shown} and {len(names) - SHOWN} more'


def heads(model: nn.Module) -> Iterator[tuple[str, int]]:
    """Yield the path in the config and the number of classes of each head of a model."""
    for name in HEADS:
        head = getattr(model, name, None)
        for index, part in enumerate(head if isinstance(head, nn.ModuleList) else [head]):
            if isinstance(number := getattr(part, 'num_classes', None), int):
                yield f'model.{name}' if part is head else f'model.{name}.{index}', number


def without_wrappers(dataset: Any) -> Any:
    """Return the data set inside wrappers such as ``RepeatDataset``."""
    while hasattr(dataset, 'dataset'):
        dataset = dataset.dataset
    return dataset


def has_labels(dataset: Dataset) -> bool:
    """Return whether the images of a classification data set have labels."""
    dataset = without_wrappers(dataset)
    return not hasattr(dataset, 'get_data_info') or 'gt_label' in dataset.get_data_info(0)


def labels_in(info: dict) -> list[int]:
    """Return the labels of a sample (one, several or none), given its information in the data set."""
    label = info.get('gt_label')
    if isinstance(label, (int, np.integer)):  # of a million samples
        return [int(label)]
    if isinstance(label, (list, tuple, set, np.ndarray)):
        return [int(value) for value in np.ravel([*label] if isinstance(label, set) else label)]
    return []
