"""What the settings that every run has may be, by their paths."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """What a setting may be.

    Attributes:
        allows: tells whether a value is of this kind.
        words: says it to the user.
    """

    allows: Callable[[Any], bool]
    words: str


LEVELS = ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL', 'NOTSET')


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_part(value: Any) -> bool:
    """Something that can be built, or has been."""
    if isinstance(value, dict):
        return value.get('type') is not None
    return value is not None and not isinstance(value, (bool, int, float, str, list, tuple, set))


def _is_level(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value in LEVELS)


COUNT = Kind(lambda value: type(value) is int and value > 0, 'a whole number of at least 1')
NOT_NEGATIVE = Kind(lambda value: type(value) is int and value >= 0, 'a whole number of at least 0')
RATE = Kind(lambda value: _is_number(value) and value >= 0, 'a number of at least 0')
SWITCH = Kind(lambda value: isinstance(value, bool), 'True or False')
SEED = Kind(lambda value: value is None or (type(value) is int and 0 <= value < 2**32), 'from 0 to 2**32 - 1, or None')
THREADS = Kind(lambda value: value == 'auto' or COUNT.allows(value), "a number of threads, or 'auto'")
PRECISION = Kind(lambda value: value in ('highest', 'high', 'medium'), "'highest', 'high' or 'medium'")
LEVEL = Kind(_is_level, "'DEBUG', 'INFO', 'WARNING' or 'ERROR'")
TEXT = Kind(lambda value: isinstance(value, str) and bool(value), 'a text')
TEXT_OR_NONE = Kind(lambda value: value is None or TEXT.allows(value), 'a text, or None')
SETTINGS = Kind(lambda value: value is None or isinstance(value, dict), 'a dict of settings, or None')
HALF = Kind(
    lambda value: value is None or str(value).removeprefix('torch.') in ('bfloat16', 'float16'),
    "'bfloat16' or 'float16'",
)
COMPILE = Kind(lambda value: isinstance(value, (bool, dict)), 'True, False, or a dict of options of torch.compile')
PART = Kind(_is_part, "a dict with a 'type'")
PARTS = Kind(lambda value: value is None or isinstance(value, (list, tuple)), 'a list of dicts, or None')
PIPELINE = Kind(lambda value: isinstance(value, (list, tuple)) and bool(value), 'a list of steps, at least one')

# Patterns of paths; a setting that is absent is not looked at.
VALUES = [
    ('model', PART),
    ('work_dir', TEXT),
    ('load_from', TEXT_OR_NONE),
    ('resume', SWITCH),
    ('log_level', LEVEL),
    ('custom_hooks', PARTS),
    ('default_hooks', SETTINGS),
    ('env_cfg', SETTINGS),
    ('env_cfg.cudnn_benchmark', SWITCH),
    ('randomness', SETTINGS),
    ('randomness.seed', SEED),
    ('randomness.deterministic', SWITCH),
    ('speed', SETTINGS),
    ('speed.threads', THREADS),
    ('speed.matmul_precision', PRECISION),
    ('speed.compile', COMPILE),
    ('auto_scale_lr.base_batch_size', COUNT),
    ('auto_scale_lr.enable', SWITCH),
    ('optim_wrapper', SETTINGS),
    ('optim_wrapper.accumulative_counts', COUNT),
    ('optim_wrapper.dtype', HALF),
    ('optim_wrapper.optimizer', PART),
    ('optim_wrapper.optimizer.lr', RATE),
    ('optim_wrapper.optimizer.momentum', RATE),
    ('optim_wrapper.optimizer.weight_decay', RATE),
    ('train_cfg', SETTINGS),
    ('train_cfg.by_epoch', SWITCH),
    ('train_cfg.max_epochs', COUNT),
    ('train_cfg.max_iters', COUNT),
    ('train_cfg.val_begin', NOT_NEGATIVE),
    ('train_cfg.val_interval', COUNT),
    ('val_cfg', SETTINGS),
    ('test_cfg', SETTINGS),
    ('val_cfg.fp16', SWITCH),
    ('test_cfg.fp16', SWITCH),
    ('*_dataloader', SETTINGS),
    ('*_dataloader.batch_size', COUNT),
    ('*_dataloader.num_workers', NOT_NEGATIVE),
    ('*_dataloader.persistent_workers', SWITCH),
    ('*_dataloader.drop_last', SWITCH),
    ('*_dataloader.dataset', PART),
    ('*_dataloader.sampler', PART),
    ('*_dataloader.*.pipeline', PIPELINE),
]
