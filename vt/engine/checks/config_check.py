"""A wrong value in a config is named by its key, before anything is built from it."""

from collections.abc import Iterator
from typing import Any

from mmengine.config import Config
from torch.utils.data import DataLoader

from vt.engine.errors.neighbours import neighbours
from vt.engine.errors.signatures import accepted_arguments

from .setting_kinds import (
    COUNT,
    LEVEL,
    NOT_NEGATIVE,
    PART,
    PART_OR_PARTS,
    PARTS,
    PIPELINE,
    RATE,
    SETTINGS,
    SWITCH,
    TEXT,
    Kind,
    optional,
)

SPLITS = ('train', 'val', 'test')


# Settings of mmengine's runner and what stands below them, by their paths; a setting that is absent is not looked at.
KINDS = {
    'model': PART,
    'work_dir': TEXT,
    'default_scope': TEXT,
    'data_preprocessor': optional(SETTINGS),
    'default_hooks': SETTINGS,
    'default_hooks.*': optional(PART),
    'custom_hooks': optional(PARTS),
    'env_cfg': SETTINGS,
    'env_cfg.cudnn_benchmark': SWITCH,
    'env_cfg.mp_cfg': SETTINGS,
    'env_cfg.dist_cfg': SETTINGS,
    'env_cfg.resource_limit': COUNT,
    'randomness': SETTINGS,
    'randomness.seed': optional(Kind(lambda value: type(value) is int and 0 <= value < 2**32, 'from 0 to 2**32 - 1')),
    'randomness.deterministic': SWITCH,
    'randomness.diff_rank_seed': SWITCH,
    'log_level': LEVEL,
    'log_processor': optional(SETTINGS),
    'log_processor.window_size': COUNT,
    'load_from': optional(TEXT),
    'resume': Kind(lambda value: isinstance(value, bool), 'True or False; a path goes to --resume'),
    'visualizer': optional(PART),
    'speed': SETTINGS,
    'auto_scale_lr': optional(SETTINGS),
    'auto_scale_lr.base_batch_size': COUNT,
    'auto_scale_lr.enable': SWITCH,
    'param_scheduler': optional(PART_OR_PARTS),
    'optim_wrapper': optional(SETTINGS),
    'optim_wrapper.optimizer': PART,
    'optim_wrapper.optimizer.lr': RATE,
    'optim_wrapper.optimizer.weight_decay': RATE,
    'optim_wrapper.optimizer.momentum': RATE,
    'optim_wrapper.accumulative_counts': COUNT,
    'optim_wrapper.clip_grad': optional(SETTINGS),
    'optim_wrapper.paramwise_cfg': optional(SETTINGS),
    'train_cfg': optional(SETTINGS),
    'train_cfg.by_epoch': SWITCH,
    'train_cfg.max_epochs': COUNT,
    'train_cfg.max_iters': COUNT,
    'train_cfg.val_begin': NOT_NEGATIVE,
    'train_cfg.val_interval': COUNT,
    'val_cfg': optional(SETTINGS),
    'val_cfg.fp16': SWITCH,
    'test_cfg': optional(SETTINGS),
    'test_cfg.fp16': SWITCH,
    'val_evaluator': optional(PART_OR_PARTS),
    'test_evaluator': optional(PART_OR_PARTS),
}
LOADER_KINDS = {
    'batch_size': COUNT,
    'num_workers': NOT_NEGATIVE,
    'persistent_workers': SWITCH,
    'drop_last': SWITCH,
    'pin_memory': SWITCH,
    'prefetch_factor': optional(COUNT),
    'timeout': RATE,
    'sampler': PART,
    'batch_sampler': optional(PART),
    'dataset': PART,
    'collate_fn': PART,
}
# Settings of a dataloader beside those of PyTorch's class.
LOADER_KEYS = ('worker_init_fn', 'num_batch_per_epoch', 'disable_subprocess_warning')
for split in SPLITS:
    KINDS |= {f'{split}_dataloader': optional(SETTINGS)}
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
        if loader is not None:
            _check_loader(loader, f'{split}_dataloader')
    _check_types(cfg.to_dict(), '')


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


def _check_loader(loader: dict, path: str) -> None:
    known = [*accepted_arguments(DataLoader)[0], *LOADER_KEYS]
    unknown = [key for key in loader if key not in known]
    if unknown:
        raise ValueError(f"{path} has no setting '{unknown[0]}'; {neighbours(str(unknown[0]), known)}")
    missing = [name for name in ('dataset', 'sampler') if name not in loader]
    if missing:
        raise ValueError(f'{path} has no {missing[0]}: set {path}.{missing[0]}=dict(type=...)')
    _check_dataset(loader['dataset'], f'{path}.dataset')


def _check_types(part: Any, path: str) -> None:
    """A type is a name or a class, wherever it stands."""
    if isinstance(part, dict) and 'type' in part:
        kind = part['type']
        if not (kind is None or callable(kind) or (isinstance(kind, str) and kind)):
            raise ValueError(f'{path}.type={kind!r} must be the name of a type')
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, (list, tuple)) else ()
    for key, value in items:
        _check_types(value, f'{path}.{key}' if path else str(key))


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
