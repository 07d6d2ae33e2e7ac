"""Whether the parts of a config fit each other: metrics, losses and augmentations the classes, images the stem."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from numbers import Number
from typing import Any

from mmengine.config import Config
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from torch import Tensor, nn

from vt.engine.config_files import dicts_in
from vt.errors import UserError

from .channels import check_image_channels

# Of mmengine's backends of the visualizer that import a package: its name.
PACKAGES = {
    f'{name}VisBackend': name.lower()
    for name in ('Aim', 'ClearML', 'DVCLive', 'MLflow', 'Neptune', 'Tensorboard', 'Wandb')
}
HEADS = ('head', 'decode_head', 'auxiliary_head')


def check_fit(cfg: Config) -> None:
    """Compare metrics and losses of a config with the classes of its heads, and channels with one another.

    Raises:
        UserError: channels that differ; a score of more classes than there are; weights of a loss of another number of
            classes; one output for two classes under a softmax; a logging package that is missing; a schedule that
            begins after the run.
    """
    check_image_channels(cfg)
    _check_packages(cfg)
    _check_schedules(cfg)
    for path, head in heads_of(cfg):
        _check_losses(path, head)
    number = _num_classes(cfg)
    if number is not None:
        _check_topk(cfg, number)


def check_mixup(cfg: Config) -> None:
    """Compare the classes of augmentations that mix labels with those of the heads, which agree with the data.

    Raises:
        UserError: they differ.
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
            raise UserError(f'{path}.num_classes={own}, but the head has {number} classes: give the same number')


def check_scores(scores: dict[str, Any], hooks: Iterable[Hook]) -> None:
    """The scores that checkpoints are kept by, and that end a run, are among those of a validation, and are numbers.

    Raises:
        UserError: they are not.
    """
    numbers = [name for name, value in scores.items() if is_number(value)]
    for hook in hooks:
        if isinstance(hook, CheckpointHook):
            asked = [(name, 'default_hooks.checkpoint.save_best') for name in hook.save_best or ()]
        elif isinstance(hook, EarlyStoppingHook):
            asked = [(hook.monitor, 'EarlyStoppingHook.monitor')]
        else:
            continue
        for name, setting in asked:
            first = next(iter(scores), None)
            found = first if name == 'auto' else name
            if found not in numbers:
                what = 'is no single number' if found in scores else 'is no score of val_evaluator'
                words = f"'auto' takes the first score, {found}, which {what}" if name == 'auto' else f'{name} {what}'
                raise UserError(f'{setting}={name}: {words}; choose of {", ".join(numbers) or "none: add a metric"}')


def check_channels(model: nn.Module, batch: dict) -> None:
    """Compare the channels of a collated batch of images with those of the model's first convolution.

    Raises:
        UserError: they differ.
    """
    inputs = batch.get('inputs') if isinstance(batch, dict) else None
    image = inputs[0] if isinstance(inputs, (list, tuple, Tensor)) and len(inputs) else None
    stem = next((part for part in model.modules() if isinstance(part, (nn.Conv2d, nn.Conv3d))), None)
    if not isinstance(image, Tensor) or stem is None or image.dim() != 3 or isinstance(stem, nn.Conv3d):
        return
    mean = getattr(getattr(model, 'data_preprocessor', None), 'mean', None)
    channels = mean.numel() if isinstance(mean, Tensor) else 0
    if image.shape[0] != stem.in_channels:
        repair = "set in_channels of the backbone, or color_type='color' ('grayscale' for one) of LoadImageFromFile"
        found = f'images have {image.shape[0]} channels, the first convolution takes {stem.in_channels}'
        raise UserError(f'{found}: {repair}')
    if channels not in (0, 1, image.shape[0]):
        raise UserError(
            f'images have {image.shape[0]} channels, data_preprocessor.mean has {channels}: give a mean and std each'
        )


def model_of(cfg: Config) -> dict:
    """The config of the model, which test-time augmentation wraps."""
    model = cfg.get('model') or {}
    return model.get('module') or model


def heads_of(cfg: Config) -> Iterator[tuple[str, dict]]:
    """Paths and configs of a model's heads."""
    for name in HEADS:
        part = model_of(cfg).get(name)
        for index, head in enumerate(dicts_in(part)):
            yield (f'model.{name}.{index}' if isinstance(part, (list, tuple)) else f'model.{name}'), head


def _num_classes(cfg: Config) -> int | None:
    """The number of classes, where the heads agree on one."""
    numbers = {head['num_classes'] for _, head in heads_of(cfg) if isinstance(head.get('num_classes'), int)}
    return numbers.pop() if len(numbers) == 1 else None


def _check_packages(cfg: Config) -> None:
    for index, backend in enumerate(dicts_in((cfg.get('visualizer') or {}).get('vis_backends'))):
        package = PACKAGES.get(str(backend.get('type')).split('.')[-1])
        if package and find_spec(package) is None:
            where = f'visualizer.vis_backends.{index} is {backend["type"]}, whose package {package} is not installed'
            raise UserError(f'{where}: pip install {package}, or remove it')


def _check_schedules(cfg: Config) -> None:
    """Where a config gives no end, mmengine enters the run's; ours begin before it by themselves."""
    loop = cfg.get('train_cfg') or {}
    for index, part in enumerate(dicts_in(cfg.get('param_scheduler'))):
        unit = 'epochs' if part.get('by_epoch', True) else 'iters'
        begin, length = part.get('begin', 0), loop.get(f'max_{unit}')
        is_open = part.get('end') is None and not str(part.get('type')).startswith('vt.')
        if is_open and isinstance(length, int) and isinstance(begin, int) and begin >= length:
            where = f'param_scheduler.{index} begins after {begin} {unit}, and the run ends after {length}'
            raise UserError(f'{where}: leave it out, set its begin, or raise train_cfg.max_{unit}')


def _check_losses(path: str, head: dict) -> None:
    number = head.get('num_classes')
    for name in ('loss', 'loss_decode', 'loss_cls'):
        for loss in dicts_in(head.get(name)):
            weights, of_pixels = loss.get('class_weight'), name == 'loss_decode' and not loss.get('use_sigmoid')
            for key in ('class_weight', 'pos_weight'):
                if isinstance(loss.get(key), (list, tuple)) and isinstance(number, int):
                    of_masks = 'loss_cls' in (name, str(loss.get('loss_name'))[:8])  # which may be of no class
                    if len(loss[key]) not in (number, number + of_masks):
                        where = f'{path}.{name}.{key} has {len(loss[key])} numbers'
                        raise UserError(f'{where}, {path}.num_classes={number}: give one a class')
            if loss.get('pos_weight') is not None and not loss.get('use_sigmoid', loss.get('mode') == 'multi_label'):
                words = f'{path}.{name}.pos_weight is of sigmoids, and has no effect on a softmax'
                raise UserError(f'{words}: set class_weight in its place, or use_sigmoid=True')
            if of_pixels and weights is not None and loss.get('avg_non_ignore'):
                words = f'{path}.{name} has class_weight and avg_non_ignore=True, which MMSegmentation cannot combine'
                raise UserError(f'{words}: leave avg_non_ignore out; with class_weight ignored pixels count in no case')
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
            raise UserError(f'{path}.topk={topk} asks for the best {highest} of {number} classes: set topk=(1,)')


def is_number(value: Any) -> bool:
    """Whether a score is one number, and not a matrix or a list."""
    return isinstance(value, Number) or (isinstance(value, Tensor) and value.numel() == 1)
