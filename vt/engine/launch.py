"""Build a runner from a config, on GPUs or on a CPU."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from mmengine.config import Config
from mmengine.dist import get_world_size
from mmengine.logging import MMLogger
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, RUNNERS, init_default_scope
from mmengine.runner import Runner
from torch import nn

from vt.errors import UserError

from .default_hooks import enter_defaults
from .mixed_precision import enter_amp
from .runner import VTRunner


def build_runner(cfg: Config, amp: bool = False) -> Runner:
    """The runner that a config names, by default mmengine's with our settings for speed, for one process or many.

    Several processes have met before, see :func:`vt.engine.processes.distributed.join_processes`. Where SyncBN has
    nothing to synchronise BN takes its place, and one line of the log says so.

    Args:
        cfg: a config; what every run gets is entered.
        amp: mixed precision, see :func:`vt.engine.mixed_precision.choose_dtype`.
    """
    notes = enter_amp(cfg, amp)
    own_runner = cfg.get('runner_type')
    asks_sync_bn = cfg.get('sync_bn') or 'SyncBN' in str(cfg.model)
    if own_runner and ('FlexibleRunner' in str(own_runner) or cfg.get('fsdp')):
        raise UserError('runner_type: models are sharded by the key fsdp, and by the runner of VT alone: leave it out')
    if 'ZeroRedundancyOptimizer' in str((cfg.get('optim_wrapper') or {}).get('optimizer')):
        raise UserError('optim_wrapper.optimizer: ZeroRedundancyOptimizer is replaced by the key fsdp')
    enter_defaults(cfg)
    if cfg.get('randomness', {}).get('deterministic'):
        os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')  # without it PyTorch refuses cuBLAS's products
    runner = RUNNERS.build(cfg) if own_runner else VTRunner.from_cfg(cfg)
    if not isinstance(runner, VTRunner):
        runner.logger.info(f'Speed: no setting is made, since the config names its own runner, {own_runner}')
    for note in notes:
        runner.logger.warning(note)
    if asks_sync_bn and get_world_size() == 1:
        runner.logger.info('SyncBN is BN here: there is one process, so its batch is the whole batch.')
    return runner


def build_model(cfg: Config) -> nn.Module:
    """The model of a config without a runner, for one process; its weights are arbitrary."""
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    if 'data_preprocessor' in cfg:
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)  # as mmengine's runner does
    return revert_sync_batchnorm(MODELS.build(cfg.model))


def require_device(device: str | torch.device | None) -> torch.device:
    """A device that computes on this machine, the CPU for None; a UserError if it does not."""
    try:
        found = torch.device('cpu' if device is None else device)
        torch.zeros(1, device=found).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        message = f"device '{device}' cannot be used: it is no device that PyTorch finds on this machine; give cpu"
        raise UserError(message) from error
    return found


def draw_weights(model: nn.Module) -> None:
    """Draw a model's weights as its config says, without MMEngine's line for each tensor."""
    with quiet(logging.WARNING):
        model.init_weights()


@contextmanager
def quiet(level: int) -> Iterator[None]:
    """Log nothing below a level, one of :mod:`logging`'s."""
    logger = MMLogger.get_current_instance()
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def is_segmentation(cfg: Config) -> bool:
    """Whether predictions are maps of labels."""
    return 'decode_head' in cfg.model.get('module', cfg.model)  # test-time augmentation wraps the model
