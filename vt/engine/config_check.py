"""A wrong value in a config is named by its key, before anything is built from it."""

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mmengine.config import Config

SPLITS = ('train', 'val', 'test')


class Kind(NamedTuple):
    """What a setting may be.

    Attributes:
        allows: tells whether a value is of this kind.
        words: says it to the user.
    """

    allows: Callable[[Any], bool]
    words: str


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_part(value: Any) -> bool:
    """Something that can be built, or has been."""
    if isinstance(value, dict):
        return isinstance(value.get('type'), str) or callable(value.get('type'))
    return value is not None and not isinstance(value, (bool, int, float, str, list, tuple))


def _is_pipeline(value: Any) -> bool:
    steps = (list, tuple)
    return isinstance(value, steps) and bool(value) and all(_is_part(step) or callable(step) for step in value)


def _optional(kind: Kind) -> Kind:
    return Kind(lambda value: value is None or kind.allows(value), f'{kind.words}, or None')


COUNT = Kind(_is_count, 'a whole number of at least 1')
NOT_NEGATIVE = Kind(lambda value: type(value) is int and value >= 0, 'a whole number of at least 0')
RATE = Kind(lambda value: _is_number(value) and value >= 0, 'a number of at least 0')
SWITCH = Kind(lambda value: isinstance(value, bool), 'True or False')
TEXT = Kind(lambda value: isinstance(value, str) and bool(value) and '\0' not in value, 'a text')
SETTINGS = Kind(lambda value: isinstance(value, dict), 'a dict of settings')
PART = Kind(_is_part, "a dict with a 'type'")
PARTS = Kind(
    lambda value: isinstance(value, (list, tuple)) and all(_is_part(part) for part in value),
    "a list of dicts, each with a 'type'",
)
PART_OR_PARTS = Kind(lambda value: PART.allows(value) or PARTS.allows(value), "a dict with a 'type', or a list of them")
PIPELINE = Kind(_is_pipeline, "a list of steps, at least one, each a dict with a 'type'")
LEVEL = Kind(
    lambda value: isinstance(value, (str, int)) and value in {**logging._nameToLevel, **logging._levelToName},
    "'DEBUG', 'INFO', 'WARNING' or 'ERROR'",
)

# Settings of mmengine's runner and what stands below them, by their paths; a setting that is absent is not looked at.
KINDS = {
    'model': PART,
    'work_dir': TEXT,
    'default_scope': TEXT,
    'data_preprocessor': _optional(SETTINGS),
    'default_hooks': SETTINGS,
    'default_hooks.*': _optional(PART),
    'custom_hooks': _optional(PARTS),
    'env_cfg': SETTINGS,
    'env_cfg.cudnn_benchmark': SWITCH,
    'env_cfg.mp_cfg': SETTINGS,
    'env_cfg.dist_cfg': SETTINGS,
    'env_cfg.resource_limit': COUNT,
    'randomness': SETTINGS,
    'randomness.seed': _optional(Kind(lambda value: type(value) is int and 0 <= value < 2**32, 'from 0 to 2**32 - 1')),
    'randomness.deterministic': SWITCH,
    'randomness.diff_rank_seed': SWITCH,
    'log_level': LEVEL,
    'log_processor': _optional(SETTINGS),
    'log_processor.window_size': COUNT,
    'load_from': _optional(TEXT),
    'resume': Kind(lambda value: isinstance(value, bool), 'True or False; a path goes to --resume'),
    'visualizer': _optional(PART),
    'speed': SETTINGS,
    'auto_scale_lr': _optional(SETTINGS),
    'auto_scale_lr.base_batch_size': COUNT,
    'auto_scale_lr.enable': SWITCH,
    'param_scheduler': _optional(PART_OR_PARTS),
    'optim_wrapper': _optional(SETTINGS),
    'optim_wrapper.optimizer': PART,
    'optim_wrapper.optimizer.lr': RATE,
    'optim_wrapper.optimizer.weight_decay': RATE,
    'optim_wrapper.optimizer.momentum': RATE,
    'optim_wrapper.accumulative_counts': COUNT,
    'optim_wrapper.clip_grad': _optional(SETTINGS),
    'optim_wrapper.paramwise_cfg': _optional(SETTINGS),
    'train_cfg': _optional(SETTINGS),
    'train_cfg.by_epoch': SWITCH,
    'train_cfg.max_epochs': COUNT,
    'train_cfg.max_iters': COUNT,
    'train_cfg.val_begin': NOT_NEGATIVE,
    'train_cfg.val_interval': COUNT,
    'val_cfg': _optional(SETTINGS),
    'val_cfg.fp16': SWITCH,
    'test_cfg': _optional(SETTINGS),
    'test_cfg.fp16': SWITCH,
    'val_evaluator': _optional(PART_OR_PARTS),
    'test_evaluator': _optional(PART_OR_PARTS),
}
LOADER_KINDS = {
    'batch_size': COUNT,
    'num_workers': NOT_NEGATIVE,
    'persistent_workers': SWITCH,
    'drop_last': SWITCH,
    'pin_memory': SWITCH,
    'prefetch_factor': _optional(COUNT),
    'timeout': RATE,
    'sampler': PART,
    'batch_sampler': _optional(PART),
    'dataset': PART,
    'collate_fn': PART,
}
for split in SPLITS:
    KINDS |= {f'{split}_dataloader': _optional(SETTINGS)}
    KINDS |= {f'{split}_dataloader.{name}': kind for name, kind in LOADER_KINDS.items()}


def check_config(cfg: Config) -> None:
    """Check the settings that every run has; parts check their own when they are built.

    Raises:
        ValueError: a setting has a value of a wrong kind; the line names both.
    """
    if 'model' not in cfg:
        raise ValueError('there is no model in it: set model=dict(type=...)')
    for path, kind in KINDS.items():
        for found, value in _find(cfg, path.split('.')):
            _require(kind, found, value)
    for split in SPLITS:
        loader = cfg.get(f'{split}_dataloader')
        if loader and 'dataset' in loader:
            _check_dataset(loader.dataset, f'{split}_dataloader.dataset')


def _require(kind: Kind, path: str, value: Any) -> None:
    if not kind.allows(value):
        text = repr(value)
        text = text if len(text) <= 80 else f'{text[:78]} …'
        raise ValueError(f'{path}={text} must be {kind.words}')


def _find(part: Any, keys: list[str], path: str = '') -> Iterator[tuple[str, Any]]:
    """The values at a path, ``*`` for every key, with the paths that were walked."""
    if not isinstance(part, (dict, Config)):
        return
    first, *rest = keys
    for key in list(part.keys()) if first == '*' else [first]:
        if key in part:
            below = f'{path}.{key}' if path else str(key)
            if rest:
                yield from _find(part[key], rest, below)
            else:
                yield below, part[key]


def _check_dataset(dataset: dict, path: str) -> None:
    """The pipelines of a data set and of those that it wraps."""
    if not isinstance(dataset, dict):
        return
    if 'pipeline' in dataset:
        _require(PIPELINE, f'{path}.pipeline', dataset['pipeline'])
    if 'dataset' in dataset:
        _require(PART, f'{path}.dataset', dataset['dataset'])
        _check_dataset(dataset['dataset'], f'{path}.dataset')
    if 'datasets' in dataset:
        _require(PARTS, f'{path}.datasets', dataset['datasets'])
        for number, inner in enumerate(dataset['datasets']):
            _check_dataset(inner, f'{path}.datasets.{number}')
