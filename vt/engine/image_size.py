"""Set the size of images in all pipelines and the model of a config by one setting, ``image_size=96``."""

from collections.abc import Iterator
from typing import Any

from mmengine.config import Config

from vt.errors import UserError

from .checks.config import accepted_arguments, find_types
from .config_parts import leaves, model_of, steps_in

SIDES = ('scale', 'scales', 'size', 'crop_size', 'target_size')  # arguments of a step of a pipeline, in pixels
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def enter_image_size(cfg: Config) -> None:
    """Apply ``image_size`` of a config in place: the side in pixels of the images that the model gets in training.

    All sizes in pipelines, of padding and of sliding windows are scaled by the same factor, so that the last size in
    the training pipeline becomes ``image_size``: with 112, a crop of 224 from 256 becomes a crop of 112 from 128.
    Backbones with an argument ``image_size``, or MMPretrain's ``img_size``, get it as well.

    Raises:
        UserError: training images are not square.
    """
    side, model = cfg.image_size, model_of(cfg)
    steps = [step for name in LOADERS for step in _steps(cfg.get(name))]
    settings = [*steps, *steps_in(cfg.get('tta_pipeline')), model.get('test_cfg')]
    for preprocessor in (cfg.get('data_preprocessor') or {}, model.get('data_preprocessor') or {}):
        settings += [preprocessor, preprocessor.get('test_cfg')]
    ratio = side / _side_of([*_steps(cfg.get('train_dataloader'))] or steps, side)
    for part in {id(part): part for part in settings if part}.values():  # val and test may share one
        for key in part.keys() & {*SIDES, 'stride', 'max_size'}:
            part[key] = _scaled(part[key], ratio)
    backbone, path = model.get('backbone'), 'model.backbone'
    while isinstance(backbone, dict):
        for built in find_types(str(backbone.get('type')), cfg.get('default_scope') or 'mmpretrain', path):
            backbone.update(dict.fromkeys({'image_size', 'img_size'} & {*accepted_arguments(built)[0]}, side))
        name = 'backbone' if backbone.get('backbone') else 'module'  # of vt.LoRAModel
        backbone, path = backbone.get(name), f'{path}.{name}'


def _side_of(steps: list[dict], side: int) -> int:
    """Return the side of the images that a pipeline makes, in pixels."""
    before = next(step[key] for step in reversed(steps) for key in SIDES if _is_size(step.get(key)))
    if isinstance(before, int):
        return before
    if len({*before}) > 1:
        raise UserError(
            f'image_size={side}: training images are {before}, not square; set sizes in the pipelines instead'
        )
    return before[0]


def _steps(loader: Any) -> Iterator[dict]:
    for dataset in leaves((loader or {}).get('dataset')):
        yield from steps_in(dataset.get('pipeline'))


def _is_size(value: Any) -> bool:
    """Return whether a value is one or two sides in pixels, not a ratio or a factor."""
    sides = value if isinstance(value, (list, tuple)) else [value]
    return bool(sides) and all(type(each) is int and each > 1 for each in sides)


def _scaled(value: Any, ratio: float) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_scaled(each, ratio) for each in value)
    return round(value * ratio) if _is_size(value) else value
