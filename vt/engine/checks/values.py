"""Allowed values of the settings that every run has, by their paths."""

import math
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

# Of mmengine and of the functions of torch.nn.utils that it calls.
CLIPS = ('type', 'max_norm', 'norm_type', 'clip_value', 'error_if_nonfinite', 'foreach')
LEVELS = ('DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL', 'NOTSET')


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_part(value: Any) -> bool:
    """Return whether a value is the config of a part, or a part that has been built."""
    if isinstance(value, dict):
        return value.get('type') is not None
    return value is not None and not isinstance(value, (bool, int, float, str, list, tuple, set))


# Test of the value, what it must be, and patterns of paths; missing settings are not checked.
VALUES = [
    (_is_part, "a dict with a 'type'", 'model optim_wrapper.optimizer *_dataloader.dataset *_dataloader.sampler'),
    (
        _is_count,
        'a whole number of at least 1',
        'auto_scale_lr.base_batch_size optim_wrapper.accumulative_counts train_cfg.max_epochs train_cfg.max_iters '
        'train_cfg.val_interval *_dataloader.batch_size',
    ),
    (
        lambda value: type(value) is int and value >= 0,
        'a whole number of at least 0',
        'train_cfg.val_begin *_dataloader.num_workers',
    ),
    (
        lambda value: type(value) in (int, float) and math.isfinite(value) and value >= 0,
        'a number of at least 0',
        'optim_wrapper.optimizer.lr optim_wrapper.optimizer.momentum optim_wrapper.optimizer.weight_decay',
    ),
    (
        lambda value: isinstance(value, bool),
        'True or False',
        'resume env_cfg.cudnn_benchmark randomness.deterministic auto_scale_lr.enable train_cfg.by_epoch val_cfg.fp16 '
        'test_cfg.fp16 *_dataloader.persistent_workers *_dataloader.drop_last fsdp.asynchronous',
    ),
    (
        lambda value: value is None or isinstance(value, dict),
        'a dict of settings, or None',
        'default_hooks env_cfg fsdp randomness speed optim_wrapper train_cfg val_cfg test_cfg *_dataloader',
    ),
    (
        lambda value: type(value) is int,
        'a whole number',
        'default_hooks.checkpoint.interval default_hooks.checkpoint.max_keep_ckpts default_hooks.logger.interval',
    ),
    (
        lambda value: value is None or (isinstance(value, dict) and not value.keys() - CLIPS),
        f'a dict with {", ".join(CLIPS)}, or None',
        'optim_wrapper.clip_grad',
    ),
    (
        lambda value: value is None or all(map(_is_part, value if isinstance(value, (list, tuple)) else [value])),
        "a dict with a 'type', a list of them, or None",
        'model.init_cfg model.*.init_cfg',
    ),
    (
        lambda value: value in (None, 'weighted', 'focal', 'balanced'),
        "'weighted', 'focal' or 'balanced', or None",
        'imbalance',
    ),
    (lambda value: isinstance(value, (list, tuple)) and bool(value), 'a list of classes', 'fsdp.units'),
    (lambda value: value is None or _is_count(value), 'a whole number of at least 1, or None', 'fsdp.shard_over'),
    (lambda value: isinstance(value, str) and bool(value), 'a string that is not empty', 'work_dir'),
    (
        lambda value: value is None or (isinstance(value, str) and bool(value)),
        'a string that is not empty, or None',
        'load_from',
    ),
    (
        lambda value: isinstance(value, int) or (isinstance(value, str) and value in LEVELS),
        "'DEBUG', 'INFO', 'WARNING' or 'ERROR'",
        'log_level',
    ),
    (lambda value: value is None or isinstance(value, (list, tuple)), 'a list of dicts, or None', 'custom_hooks'),
    (
        lambda value: isinstance(value, (list, tuple)) and bool(value),
        'a list of at least one step',
        '*_dataloader.*.pipeline',
    ),
    (
        lambda value: value is None or (type(value) is int and 0 <= value < 2**32),
        'a whole number from 0 to 2**32 - 1, or None',
        'randomness.seed',
    ),
    (lambda value: value == 'auto' or _is_count(value), "a number of threads, or 'auto'", 'speed.threads'),
    (
        lambda value: value in ('highest', 'high', 'medium'),
        "'highest', 'high' or 'medium'",
        'speed.matmul_precision',
    ),
    (
        lambda value: isinstance(value, (bool, dict)),
        'True, False, or a dict of options of torch.compile',
        'speed.compile',
    ),
    (
        lambda value: value is None or str(value).removeprefix('torch.') in ('bfloat16', 'float16'),
        "'bfloat16' or 'float16'",
        'optim_wrapper.dtype',
    ),
]


def unfit_for(path: str, value: Any) -> Iterator[str]:
    """Yield what the setting at a path must be, if the value is not allowed."""
    for allows, words, patterns in VALUES:
        if any(fnmatch(path, pattern) for pattern in patterns.split()) and not allows(value):
            yield words
