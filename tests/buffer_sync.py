"""What a process of several has in its buffers after they are averaged."""

from types import SimpleNamespace

import torch
from torch import nn

from vt.engine.processes.distributed import SyncBuffersHook


def synchronise(model):
    SyncBuffersHook().after_train_iter(SimpleNamespace(model=model), 0)


def sync_shard(rank):
    """Running means of a model, a constant of all processes, and batches counted."""
    model = nn.BatchNorm2d(2)
    model.register_buffer('constant', torch.tensor([0.1]))
    model.running_mean.fill_(rank)
    model.num_batches_tracked.fill_(5)
    synchronise(model)
    return model.running_mean, model.constant, model.num_batches_tracked


def sync_twice(rank):
    """A float64 buffer and one in channels_last, its strides, and what a layer's update between two averages gives."""
    model = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(4).double())
    maps = torch.arange(16.0).view(1, 2, 2, 4).add(rank).contiguous(memory_format=torch.channels_last)
    model.register_buffer('maps', maps)
    synchronise(model)
    model[0].running_mean.add_(rank)  # in place, as BN does
    model[1].running_var.fill_(rank)
    synchronise(model)
    return model[0].running_mean, model[1].running_var, model.maps, torch.tensor(model.maps.stride())
