"""What a process of several has in its buffers after they are averaged."""

from types import SimpleNamespace

import torch
from mmengine.model import ImgDataPreprocessor
from torch import nn
from torch.profiler import profile

from vt.engine.processes.distributed import SyncBuffersHook
from vt.engine.processes.sync_batch_norm import CPUSyncBatchNorm


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


def sync_equal_parts(rank):
    """Buffers that are left alone: SyncBN's, before and after they are CPUs', and a data preprocessor's."""
    preprocessor = ImgDataPreprocessor(mean=[rank] * 3, std=[1] * 3)
    model = nn.Sequential(nn.SyncBatchNorm(2), CPUSyncBatchNorm(2), preprocessor)
    for layer in model[:2]:
        layer.running_mean.fill_(rank)
    with profile() as seen:
        synchronise(model)
    collectives = [event.name for event in seen.events() if 'reduce' in event.name]
    return *(layer.running_mean for layer in model[:2]), preprocessor.mean.flatten(), torch.tensor(len(collectives))


def count_copies(rank, layers):
    """Copies of tensors that the average of so many layers takes."""
    model = nn.Sequential(*(nn.BatchNorm2d(4) for _ in range(layers)))
    synchronise(model)
    with profile() as seen:
        synchronise(model)
    return sum(event.name in ('aten::copy_', 'aten::clone') for event in seen.events())
