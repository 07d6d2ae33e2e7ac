"""What one process of several computes, for ``process_groups.run_function``."""

import resource
from types import SimpleNamespace

import torch
from mmengine.config import Config
from torch import distributed, nn

from vt.engine.run.launch import build_runner
from vt.engine.run.processes import SyncBuffersHook
from vt.engine.run.sharding import ShardSettings
from vt.engine.run.speed_settings import keep_freed_memory
from vt.engine.run.sync_batch_norm import CPUSyncBatchNorm

CLASSIFIER = dict(
    type='mmpretrain.ImageClassifier',
    backbone=dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=64),
    neck=dict(type='vt.TokenAverage'),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=64),
)


def run_steps(norm, batches):
    """Outputs, gradients of the maps and of the parameters, the state, and what evaluation gives.

    ``batches`` holds for each step the maps and what their outputs are multiplied with before the loss.
    """
    results = []
    for maps, factors in batches:
        maps = maps.clone().requires_grad_()
        output = norm(maps)
        (output * factors).square().sum().backward()
        results += [output.detach(), maps.grad]
    gradients = [parameter.grad for parameter in norm.parameters()]
    return results, gradients, dict(norm.state_dict()), norm.eval()(batches[0][0]).detach()


def run_shard(rank, shards, settings, batches):
    """The steps of this process's shard of the batches, for each of several settings of the normalisation."""
    parts = [[part.split(shards)[rank] for part in batch] for batch in batches]
    return [run_steps(CPUSyncBatchNorm(batches.shape[3], **each).to(batches.dtype), parts) for each in settings]


def average_buffers(rank):
    """Buffers of a model after each was averaged twice, with updates of a layer in between."""
    model = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(4).double())
    maps = torch.arange(16.0).view(1, 2, 2, 4).add(rank).contiguous(memory_format=torch.channels_last)
    model.register_buffer('maps', maps)
    model.register_buffer('constant', torch.tensor([0.1]))
    model[0].num_batches_tracked.fill_(5)
    for _ in range(2):
        model[0].running_mean.add_(rank)  # in place, as BN does
        model[1].running_var.fill_(rank)
        SyncBuffersHook().after_train_iter(SimpleNamespace(model=model), 0)
    strides, first = torch.tensor(model.maps.stride()), model[0]
    return first.running_mean, model[1].running_var, model.maps, strides, model.constant, first.num_batches_tracked


def meshes_of(rank, shards):
    """The ranks in the mesh of each number of processes that share the weights."""
    return [ShardSettings(shard_over=each).make_mesh().mesh.tolist() for each in shards]


def count_page_faults(rank):
    """Those of the last of many allocations of the same size; glibc settles within ten."""
    assert keep_freed_memory()
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def build_norms(rank, folder, norms):
    """The kind of layers that a runner's model has, for each norm that a config asks for."""
    found = []
    for norm in norms:
        is_converted = norm == 'converted BN'
        backbone = CLASSIFIER['backbone'] | dict(norm_cfg=dict(type='BN' if is_converted else norm))
        model = CLASSIFIER | dict(backbone=backbone)
        cfg = Config(dict(model=model, default_scope='mmpretrain', work_dir=f'{folder}/{norm}', experiment_name=norm))
        cfg.sync_bn = 'torch' if is_converted else None
        if distributed.is_initialized():
            cfg.update(launcher='pytorch', model_wrapper_cfg=dict(type='vt.CPUDistributedDataParallel'))
        parts = build_runner(cfg).model.modules()
        found.append({type(part).__name__ for part in parts if 'Norm' in type(part).__name__})
    return found
