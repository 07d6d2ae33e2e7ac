"""What a process of several has in its buffers before and after they are averaged."""

from types import SimpleNamespace

import torch
from mmengine.hooks import EMAHook
from mmengine.model import ExponentialMovingAverage
from torch import nn

from vt.engine.processes.distributed import SyncBuffersHook


def sync_shard(rank):
    """Running means of a model, of its moving average, a constant of all processes, and batches counted."""
    model = nn.BatchNorm2d(2)
    model.register_buffer('constant', torch.tensor([0.1]))
    average = EMAHook()
    average.ema_model = ExponentialMovingAverage(model, update_buffers=True)
    model.running_mean.fill_(rank)
    average.ema_model.module.running_mean.fill_(10 * rank)
    model.num_batches_tracked.fill_(5)
    runner = SimpleNamespace(model=model, hooks=[EMAHook(), average])
    SyncBuffersHook().before_val(runner)
    ema = average.ema_model.module
    return model.running_mean, ema.running_mean, model.constant, ema.constant, model.num_batches_tracked
