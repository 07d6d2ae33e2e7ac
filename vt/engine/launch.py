"""Build a runner from a config, on GPUs or on a CPU."""

import atexit
import gc
from collections.abc import Iterator

import torch
from mmengine.config import Config
from mmengine.dist import get_world_size
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, OPTIMIZERS, RUNNERS, init_default_scope
from mmengine.runner import Runner
from torch import nn

from .runner import SpeedRunner


def build_runner(cfg: Config) -> Runner:
    """The runner that a config names, by default mmengine's with our settings for speed, for one process or many.

    mmengine's own launcher needs GPUs. Where there is none, the processes that torchrun started meet over gloo here,
    before the runner would try NCCL. Where SyncBN has nothing to synchronise, or can't, BN takes its place, and one
    line of the log says so.
    """
    sync_bn = list(_named_sync_bn(cfg.model))
    asks_sync_bn = bool(sync_bn or cfg.get('sync_bn'))
    on_cpus = cfg.get('launcher') == 'pytorch' and not torch.cuda.is_available()
    if on_cpus:
        torch.distributed.init_process_group('gloo')
        cfg.model_wrapper_cfg = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)
        cfg.sync_bn = None  # mmengine's option to convert every BN of a model
        for layer in sync_bn:
            layer['type'] = 'BN'
    _require_optimizer(cfg)
    atexit.register(_leave_process_group)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else SpeedRunner.from_cfg(cfg)
    if not isinstance(runner, SpeedRunner):
        runner.logger.info(f'Speed: no setting is made, since the config names its own runner, {cfg.runner_type}')
    if asks_sync_bn and get_world_size() == 1:
        runner.logger.info('SyncBN is BN here: there is one process, so its batch is the whole batch.')
    elif asks_sync_bn and on_cpus:
        runner.logger.info(
            f'SyncBN is BN here: PyTorch has it on GPUs alone, so each of the {get_world_size()} processes '
            'normalises by its own share of the batch.'
        )
    return runner


def _named_sync_bn(cfg: dict | list) -> Iterator[dict]:
    """Every part of a model's config whose type is SyncBN."""
    if isinstance(cfg, dict) and cfg.get('type') == 'SyncBN':
        yield cfg
    for value in cfg.values() if isinstance(cfg, dict) else cfg:
        if isinstance(value, (dict, list, tuple)):
            yield from _named_sync_bn(value)


def build_model(cfg: Config) -> nn.Module:
    """The model of a config without a runner, for one process; its weights are arbitrary."""
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    if 'data_preprocessor' in cfg:
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)  # as mmengine's runner does
    return revert_sync_batchnorm(MODELS.build(cfg.model))


def is_segmentation(cfg: Config) -> bool:
    """Whether predictions are maps of labels."""
    return 'decode_head' in cfg.model.get('module', cfg.model)  # test-time augmentation wraps the model


def _leave_process_group() -> None:
    """End the process group's threads before the interpreter ends.

    A thread of gloo that still holds a tensor then aborts the process, after all work is done. The group joins its
    threads when nothing refers to it, so the runner goes first.
    """
    gc.collect()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _require_optimizer(cfg: Config) -> None:
    """Name a misspelt optimizer as every other misspelt type is named; mmengine says only that None can't be called."""
    name = cfg.get('optim_wrapper', {}).get('optimizer', {}).get('type')
    with OPTIMIZERS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        if isinstance(name, str) and registry.get(name) is None:
            raise KeyError(f'{name} is not in the {registry.scope}::{registry.name} registry')


def use_amp(cfg: Config) -> None:
    """Train in mixed precision: mmengine's dynamic loss scale on an accelerator, bfloat16 on a CPU."""
    if torch.cuda.is_available():
        cfg.optim_wrapper.type = 'AmpOptimWrapper'
        cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')
    else:
        cfg.optim_wrapper.type = 'vt.CPUAmpOptimWrapper'
