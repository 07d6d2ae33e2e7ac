"""FSDP2: each process holds a shard of the weights, gradients, optimizer state and averages; checkpoints are whole."""

from dataclasses import dataclass
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.dist import get_world_size, is_distributed, is_main_process
from mmengine.hooks import EMAHook
from mmengine.model import BaseDataPreprocessor, convert_sync_batchnorm
from mmengine.optim import AmpOptimWrapper
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from vt.engine.run.mixed_precision import BFloat16AmpOptimWrapper
from vt.errors import UserError

from .sync_batch_norm import use_cpu_sync_batch_norm


@dataclass(frozen=True)
class ShardSettings:
    """Settings of the config key ``fsdp``: how ``torch.distributed.fsdp.fully_shard`` shards a model in training.

    Tests do not shard. Every process initialises, loads or resumes the whole model and its optimizer on the CPU, as in
    any run; then the units move to the device one by one. Checkpoints are whole files, as those of any run.
    ``--amp`` gathers weights in bfloat16 and reduces gradients over processes in float32.

    Attributes:
        units: names of the classes whose weights are gathered together for a forward or backward pass; the rest of the
            model is one more unit. Names that do not occur in the model are ignored, but at least one must occur.
        shard_over: number of processes that share one copy of the weights, such as those of one machine. Weights are
            gathered within such a group; groups exchange only gradients. None for all processes.
    """

    units: tuple[str, ...] = ('Block', 'TransformerEncoderLayer', 'VTModule', 'Bottleneck', 'BasicBlock')
    shard_over: int | None = None

    def make_mesh(self) -> DeviceMesh:
        """Return the mesh of the processes: one dimension, or copies by shards."""
        if not is_distributed():
            raise UserError('fsdp requires torchrun, even for one process: torchrun --nproc-per-node 1 -m vt train')
        count = get_world_size()
        if self.shard_over is None or count == 1:
            return init_device_mesh(get_device(), (count,))
        sizes = count // self.shard_over, self.shard_over
        return init_device_mesh(get_device(), sizes, mesh_dim_names=('copy', 'shard'))

    def shard(self, model: nn.Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> int:
        """Shard a model in place, inner units first, and return the number of units."""
        units = [part for part in model.modules() if type(part).__name__ in self.units]
        if not units:
            names = sorted({type(part).__name__ for part in model.modules() if any(True for _ in part.children())})
            raise UserError(f'fsdp.units={list(self.units)} matches no class in the model: it has {", ".join(names)}')
        for part in model.modules():
            if isinstance(part, BaseDataPreprocessor):
                part.to(mesh.device_type)
        for parameter in model.parameters():
            parameter.data = parameter.data.contiguous()  # FSDP2 requires contiguous parameters
        number = len(list(model.parameters()))
        for part in (*reversed(units), model):
            fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=True)  # parameters of EMA follow
        if len(list(model.parameters())) > number:
            raise UserError('fsdp.units: two units share a weight: name a class that contains both')
        return len(units) + 1


def shard_run(runner: Runner, settings: ShardSettings) -> None:
    """Shard a runner's model, averages and optimizer, or raise a UserError if that is not possible."""
    wrapper: Any = runner.optim_wrapper
    model = runner.model
    if isinstance(wrapper, AmpOptimWrapper):
        raise UserError('fsdp trains in float32, or in bfloat16 with --amp, not in float16: remove AmpOptimWrapper')
    is_half = isinstance(wrapper, BFloat16AmpOptimWrapper)
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if is_half else MixedPrecisionPolicy()
    mesh, places = settings.make_mesh(), {id(weight): name for name, weight in model.named_parameters()}
    if runner.cfg.get('sync_bn'):
        model = runner.model = convert_sync_batchnorm(model, runner.cfg.sync_bn)
    if mesh.device_type == 'cpu':
        use_cpu_sync_batch_norm(model)
    number = settings.shard(model, mesh, policy)
    weights = dict(model.named_parameters())
    state = wrapper.optimizer.state_dict()
    for group in wrapper.optimizer.param_groups:
        group['params'] = [weights[places[id(weight)]] for weight in group['params']]
    if state['state']:
        sharded = [weight for group in wrapper.optimizer.param_groups for weight in group['params']]
        for index, values in state['state'].items():
            values.update({name: like(sharded[index], value) for name, value in values.items()})
        wrapper.optimizer.load_state_dict(state)
    for hook in runner.hooks:
        if isinstance(hook, EMAHook):
            averages = hook.ema_model
            settings.shard(averages.module, mesh, MixedPrecisionPolicy())
            held = averages.module.state_dict() if averages.update_buffers else averages.module.named_parameters()
            averages.avg_parameters = dict(held)
    total = sum(weight.numel() for weight in weights.values())
    shares = min(settings.shard_over or mesh.size(), mesh.size())
    runner.logger.info(
        f'FSDP: {total:,} weights in {number} units, over {shares} of {mesh.size()} processes; '
        f'gathered in {"bfloat16" if is_half else "their own dtype"}'
    )


def like(parameter: Tensor, value: Any) -> Any:
    """Return a state or gradient of a parameter with its strides, device and shards; other values as they are.

    A checkpoint keeps the layout of the run that wrote it. PyTorch's fused optimizers give wrong results if the layouts
    of a weight and its state differ.
    """
    if not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    if isinstance(parameter, DTensor):
        value = value.to(parameter.device).contiguous()
        return distribute_tensor(value, parameter.device_mesh, parameter.placements)
    return torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def checkpoint_of(runner: Any, meta: dict, save_optimizer: bool, save_param_scheduler: bool) -> dict:
    """Return the checkpoint that mmengine's runner would save, with the tensors of a sharded run as they are."""
    meta = dict(meta, cfg=runner.cfg.pretty_text, seed=runner.seed, experiment_name=runner.experiment_name)
    if hasattr(runner.train_dataloader.dataset, 'metainfo'):
        meta['dataset_meta'] = runner.train_dataloader.dataset.metainfo
    checkpoint = dict(meta=meta, state_dict=runner.model.state_dict(), message_hub=runner.message_hub.state_dict())
    if save_optimizer:
        checkpoint['optimizer'] = runner.optim_wrapper.state_dict()
    if save_param_scheduler and runner.param_schedulers is not None:
        checkpoint['param_schedulers'] = [scheduler.state_dict() for scheduler in runner.param_schedulers]
    return checkpoint


def gather(value: Any) -> Any:
    """Return a copy of a checkpoint with whole tensors on the CPU; call it in all processes.

    Only the main process keeps the tensors.
    """
    if isinstance(value, Tensor):
        whole = value.detach().full_tensor() if isinstance(value, DTensor) else value.detach()
        return whole.cpu() if is_main_process() else None
    if isinstance(value, dict):
        return {name: gather(item) for name, item in value.items()}
    return [gather(item) for item in value] if isinstance(value, list) else value
