"""Build a runner from a config, on GPUs or on a CPU."""

import torch
from mmengine.config import Config
from mmengine.dist import get_world_size
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, RUNNERS, init_default_scope
from mmengine.runner import Runner
from torch import nn

from vt.engine.processes.distributed import join_processes
from vt.errors import UserError

from .default_hooks import enter_defaults
from .runner import VTRunner


def build_runner(cfg: Config) -> Runner:
    """The runner that a config names, by default mmengine's with our settings for speed, for one process or many.

    Where SyncBN has nothing to synchronise BN takes its place, and one line of the log says so.
    """
    own_runner = cfg.get('runner_type')
    asks_sync_bn = bool(cfg.get('sync_bn') or _names_sync_bn(cfg.model))
    join_processes(cfg)
    _check_sharding(cfg)
    enter_defaults(cfg)
    runner = RUNNERS.build(cfg) if own_runner else VTRunner.from_cfg(cfg)
    if not isinstance(runner, VTRunner):
        runner.logger.info(f'Speed: no setting is made, since the config names its own runner, {own_runner}')
    if asks_sync_bn and get_world_size() == 1:
        runner.logger.info('SyncBN is BN here: there is one process, so its batch is the whole batch.')
    return runner


def _names_sync_bn(cfg: dict | list) -> bool:
    """Whether any part of a model's config is of type SyncBN."""
    values = cfg.values() if isinstance(cfg, dict) else cfg
    return (isinstance(cfg, dict) and cfg.get('type') == 'SyncBN') or any(
        _names_sync_bn(value) for value in values if isinstance(value, (dict, list, tuple))
    )


def build_model(cfg: Config) -> nn.Module:
    """The model of a config without a runner, for one process; its weights are arbitrary."""
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    if 'data_preprocessor' in cfg:
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)  # as mmengine's runner does
    return revert_sync_batchnorm(MODELS.build(cfg.model))


def is_segmentation(cfg: Config) -> bool:
    """Whether predictions are maps of labels."""
    return 'decode_head' in cfg.model.get('module', cfg.model)  # test-time augmentation wraps the model


def _check_sharding(cfg: Config) -> None:
    hooks = [*(cfg.get('custom_hooks') or []), *(cfg.get('default_hooks') or {}).values()]
    averages = any('EMAHook' in str(hook.get('type')) for hook in hooks if isinstance(hook, dict))
    if averages and 'FSDP' in str((cfg.get('strategy') or {}).get('type')):
        raise UserError('EMAHook averages whole weights, and FSDP shares them out: leave out one of the two')


def use_amp(cfg: Config) -> None:
    """Train in mixed precision: mmengine's dynamic loss scale on an accelerator, bfloat16 on a CPU."""
    if torch.cuda.is_available():
        cfg.optim_wrapper.type = 'AmpOptimWrapper'
        cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')
    else:
        cfg.optim_wrapper.type = 'vt.CPUAmpOptimWrapper'
