"""What a finished training leaves behind, as data: enough to repeat it and to lay it beside others."""

import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

from vt.analysis.complexity import count_complexity
from vt.analysis.speed import describe_device
from vt.engine.launch import build_model

# Distributions whose versions decide a result; the onedl-* ones continue OpenMMLab's under the same import names.
PACKAGES = ('torch', 'torchvision', 'numpy', 'mmengine', 'mmcv', 'mmpretrain', 'mmsegmentation')


def record_training(runner: Runner, config: str) -> dict[str, Any]:
    """Describe a finished run.

    Args:
        runner: after training.
        config: path of its config.

    Returns:
        ``config``, ``command``, ``seed``, ``seconds`` of training iterations, ``device``, ``versions``, ``metrics`` of
        the last validation (those of the last epoch, not of the best one), ``image_shape`` (channels, height, width) of
        its first image, ``flops`` (multiply-adds) and ``parameters`` at that size.
    """
    record = dict(
        config=config,
        command=shlex.join(['python', *sys.argv]),
        seed=runner.seed,
        seconds=training_seconds(runner),
        device=describe_device(next(runner.model.parameters()).device),
        versions=versions(),
    )
    return record if runner.val_loop is None else record | _record_validation(runner)


def training_seconds(runner: Runner) -> float | None:
    """Time spent in training iterations, those before an interruption too; None where no timer hook measures it."""
    if 'train/time' not in runner.message_hub.log_scalars:
        return None
    times, counts = runner.message_hub.get_scalar('train/time').data
    return float((times * counts).sum())


def versions() -> dict[str, str]:
    """Versions of Python and of the distributions that decide a result."""
    found = dict(python=platform.python_version())
    for package in PACKAGES:
        for name in (package, f'onedl-{package}'):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
    return found


def _whole_model(runner: Runner) -> nn.Module:
    """The model without a wrapper; of one that FSDP shards, another one with arbitrary weights."""
    if isinstance(runner.model, FullyShardedDataParallel):
        return build_model(runner.cfg)  # a forward pass of the sharded one would wait for all processes
    return runner.model.module if is_model_wrapper(runner.model) else runner.model


def _record_validation(runner: Runner) -> dict[str, Any]:
    scalars = runner.message_hub.log_scalars
    metrics = {name.removeprefix('val/'): float(log.current()) for name, log in scalars.items() if name[:4] == 'val/'}
    image = runner.val_dataloader.dataset[0]['inputs']
    model = _whole_model(runner)
    parameter = next(model.parameters())
    cost = count_complexity(model, torch.zeros(1, *image.shape).to(parameter), mode='tensor')
    metrics = {name: value for name, value in metrics.items() if name not in ('time', 'data_time')}
    return dict(metrics=metrics, image_shape=list(image.shape), flops=cost.flops, parameters=cost.parameters)
