"""Check that parts of a config fit each other: metrics, losses and augmentations the classes, images the model."""

from collections.abc import Iterable, Iterator
from numbers import Number
from typing import Any

from mmengine.config import Config
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from torch import Tensor, nn

from vt.engine.config_parts import dicts_in, model_of
from vt.errors import UserError

from .channels import check_image_channels

HEADS = ('head', 'decode_head', 'auxiliary_head')


def check_fit(cfg: Config) -> None:
    """Check channels, schedules, and that metrics and losses fit the number of classes.

    Raises:
        UserError: numbers of channels differ, a top-k exceeds the number of classes, loss weights have another number
            of classes, a softmax has one output, or a schedule starts after the end of the run.
    """
    check_image_channels(cfg)
    _check_schedules(cfg)
    for path, head in heads_of(cfg):
        _check_losses(path, head)
    number = _num_classes(cfg)
    if number is not None:
        _check_topk(cfg, number)


def check_mixup(cfg: Config) -> None:
    """Compare ``num_classes`` of augmentations that mix labels with that of the heads.

    Raises:
        UserError: the numbers differ.
    """
    augments = dicts_in((cfg.model.get('train_cfg') or {}).get('augments'))
    mixing = {f'model.train_cfg.augments.{index}': part for index, part in enumerate(augments)}
    preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor') or {}
    if augments or preprocessor.get('batch_augments') or preprocessor.get('to_onehot'):
        mixing['data_preprocessor'] = preprocessor
    number = _num_classes(cfg)
    for path, part in mixing.items():
        own = part.get('num_classes')
        if isinstance(own, int) and number not in (own, None):
            raise UserError(f'{path}.num_classes={own}, but the head has {number} classes: set the same number')


def check_scores(scores: dict[str, Any], hooks: Iterable[Hook], schedulers: Iterable[Any] = ()) -> None:
    """Check that the scores for the best checkpoint, early stopping and schedules are scores of a validation.

    Args:
        scores: scores of a validation.
        hooks: hooks of the run.
        schedulers: schedulers of the run; ``ReduceOnPlateauLR`` and similar ones have a ``monitor``.

    Raises:
        UserError: a score is missing or is not a single number.
    """
    numbers = [name for name, value in scores.items() if is_number(value)]
    for hook in (*hooks, *schedulers):
        if isinstance(hook, CheckpointHook):
            asked = [(name, 'default_hooks.checkpoint.save_best') for name in hook.save_best or ()]
        elif isinstance(hook, EarlyStoppingHook):
            asked = [(hook.monitor, 'EarlyStoppingHook.monitor')]
        elif hasattr(hook, 'need_val_args'):
            asked = [(hook.monitor, 'param_scheduler.monitor')]
        else:
            continue
        for name, setting in asked:
            first = next(iter(scores), None)
            found = first if name == 'auto' else name
            if found not in numbers:
                what = 'is not a single number' if found in scores else 'is not a score of val_evaluator'
                words = f"'auto' uses the first score, {found}, which {what}" if name == 'auto' else f'{name} {what}'
                known = f'set one of {", ".join(numbers)}' if numbers else 'there are no scores: add a metric'
                raise UserError(f'{setting}={name}: {words}; {known}')


def check_channels(model: nn.Module, batch: dict) -> None:
    """Compare the number of channels of a collated batch of images with that of the model's first convolution.

    Raises:
        UserError: the numbers differ.
    """
    inputs = batch.get('inputs') if isinstance(batch, dict) else None
    image = inputs[0] if isinstance(inputs, (list, tuple, Tensor)) and len(inputs) else None
    stem = next((part for part in model.modules() if isinstance(part, (nn.Conv2d, nn.Conv3d))), None)
    if not isinstance(image, Tensor) or stem is None or image.dim() != 3 or isinstance(stem, nn.Conv3d):
        return
    if image.shape[0] != stem.in_channels:
        repair = "set in_channels of the backbone, or color_type='color' (1 channel: 'grayscale') of LoadImageFromFile"
        found = f'images have {image.shape[0]} channels, but the first convolution takes {stem.in_channels}'
        raise UserError(f'{found}: {repair}')


def heads_of(cfg: Config) -> Iterator[tuple[str, dict]]:
    """Yield the path and the config of each head of a model."""
    for name in HEADS:
        part = model_of(cfg).get(name)
        for index, head in enumerate(dicts_in(part)):
            yield (f'model.{name}.{index}' if isinstance(part, (list, tuple)) else f'model.{name}'), head


def _num_classes(cfg: Config) -> int | None:
    """Return the number of classes if all heads have the same, else None."""
    numbers = {head['num_classes'] for _, head in heads_of(cfg) if isinstance(head.get('num_classes'), int)}
    return numbers.pop() if len(numbers) == 1 else None


def _check_schedules(cfg: Config) -> None:
    """Refuse schedules without ``end`` that begin after the run; the schedules of VT adapt by themselves."""
    loop = cfg.get('train_cfg') or {}
    for unit in ('epochs', 'iters'):
        begin, length = loop.get('val_begin'), loop.get(f'max_{unit}')
        if isinstance(begin, int) and isinstance(length, int) and begin > length:
            raise UserError(
                f'train_cfg.val_begin={begin}, but the run ends after {length} {unit}: it would not validate'
            )
    for index, part in enumerate(dicts_in(cfg.get('param_scheduler'))):
        unit = 'epochs' if part.get('by_epoch', True) else 'iters'
        begin, length = part.get('begin', 0), loop.get(f'max_{unit}')
        is_open = part.get('end') is None and not str(part.get('type')).startswith('vt.')
        if is_open and isinstance(length, int) and isinstance(begin, int) and begin >= length:
            where = f'param_scheduler.{index} begins after {begin} {unit}, but the run ends after {length}'
            raise UserError(f'{where}: remove it, lower its begin, or raise train_cfg.max_{unit}')


def _check_losses(path: str, head: dict) -> None:
    number = head.get('num_classes')
    for name in ('loss', 'loss_decode', 'loss_cls'):
        for loss in dicts_in(head.get(name)):
            weights, of_pixels = loss.get('class_weight'), name == 'loss_decode' and not loss.get('use_sigmoid')
            for key in ('class_weight', 'pos_weight'):
                if isinstance(loss.get(key), (list, tuple)) and isinstance(number, int):
                    of_masks = 'loss_cls' in (name, str(loss.get('loss_name'))[:8])  # has an additional "no object"
                    if len(loss[key]) not in (number, number + of_masks):
                        where = f'{path}.{name}.{key} has {len(loss[key])} numbers'
                        raise UserError(f'{where}, but {path}.num_classes={number}: set one number per class')
            if loss.get('pos_weight') is not None and not loss.get('use_sigmoid', loss.get('mode') == 'multi_label'):
                words = f'{path}.{name}.pos_weight has no effect on a softmax'
                raise UserError(f'{words}: set class_weight instead, or use_sigmoid=True')
            if name == 'loss_decode' and isinstance(weights, (list, tuple)) and loss.get('use_sigmoid'):
                words = (
                    f'{path}.{name}.class_weight and use_sigmoid=True: MMSegmentation applies the weights to columns'
                )
                raise UserError(f'{words} of the image: remove class_weight, or use a softmax')
            if of_pixels and weights is not None and loss.get('avg_non_ignore'):
                words = f'{path}.{name} has class_weight and avg_non_ignore=True, which MMSegmentation cannot combine'
                raise UserError(f'{words}: remove avg_non_ignore; with class_weight, ignored pixels never count')
            if of_pixels and head.get('out_channels') == 1:
                raise UserError(f'{path}.out_channels=1 needs a sigmoid: set {path}.{name}.use_sigmoid=True')


def _check_topk(cfg: Config, number: int) -> None:
    parts = [*heads_of(cfg)]
    for name in ('val_evaluator', 'test_evaluator'):
        metrics = dicts_in(cfg.get(name))
        parts += [(f'{name}.{index}' if len(metrics) > 1 else name, metric) for index, metric in enumerate(metrics)]
    for path, part in parts:
        topk = part.get('topk') or 0
        highest = max(topk) if isinstance(topk, (list, tuple)) else topk
        if highest > number:
            raise UserError(f'{path}.topk={topk} exceeds the number of classes, {number}: set topk=(1,)')


def is_number(value: Any) -> bool:
    """Return whether a score is a single number."""
    return isinstance(value, Number) or (isinstance(value, Tensor) and value.numel() == 1)
