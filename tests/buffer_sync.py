"""What a process of several has in its buffers after they are averaged."""

from types import SimpleNamespace

import torch
from torch import nn

from vt.engine.processes.distributed import SyncBuffersHook


def sync_shard(rank):
    """Running means of a model, a constant of all processes, and batches counted."""
    model = nn.BatchNorm2d(2)
    model.register_buffer('constant', torch.tensor([0.1]))
    model.running_mean.fill_(rank)
    model.num_batches_tracked.fill_(5)
    SyncBuffersHook().after_train_iter(SimpleNamespace(model=model), 0)
    return model.running_mean, model.constant, model.num_batches_tracked
