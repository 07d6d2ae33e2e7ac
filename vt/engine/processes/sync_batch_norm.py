"""Copies of a model in several processes on CPUs, and batch normalisation over all their batches.

PyTorch's own SyncBatchNorm needs GPUs.
"""

import warnings
from typing import Any

import torch
from mmengine.model import MMDistributedDataParallel
from torch import distributed, nn

from vt.errors import UserError
from vt.registry import MODEL_WRAPPERS


class CPUSyncBatchNorm(nn.BatchNorm2d):
    """``nn.SyncBatchNorm`` over gloo: mean and variance are those of the batches of all processes together.

    Each process counts by the number of its elements, so that shards may differ in size. Parameters, buffers and their
    names are those of BN. In evaluation, and in one process, it is BN.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalise maps of shape (N, C, ...), and in training update the running statistics."""
        if input.dim() != 4:
            return self.forward(input.reshape(*input.shape[:2], -1, 1)).view_as(input)
        if not (self.training and distributed.is_initialized() and distributed.get_world_size() > 1):
            return super().forward(input)
        values = input.to(torch.promote_types(input.dtype, torch.float32))
        mean, variance, count = _statistics_of_all(values)
        self._update_running(mean.detach(), variance.detach() * (count / (count - 1)))
        scale = (variance + self.eps).rsqrt()
        if self.affine:
            scale = scale * self.weight
        shift = (self.bias if self.affine else 0) - mean * scale
        return torch.addcmul(shift.view(1, -1, 1, 1), values, scale.view(1, -1, 1, 1)).to(input.dtype)

    @torch.no_grad()
    def _update_running(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        if not self.track_running_stats:
            return
        self.num_batches_tracked.add_(1)
        momentum = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


class _SumOverProcesses(torch.autograd.Function):
    """Each process gets the sum, so each one's gradient is the sum of all of theirs."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return _SumOverProcesses.apply(gradient)


def _statistics_of_all(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and biased variance of each channel, shape (C,), and the number of values of one, over all processes.

    Squares are taken from the common mean: the difference of two large sums would lose the digits of a small variance.
    """
    own_count = values.new_tensor([values.numel() // values.shape[1]])
    own_variance, own_mean = torch.var_mean(values, (0, 2, 3), correction=0)
    sums = _SumOverProcesses.apply(torch.cat([own_mean * own_count, own_count]))
    count = sums[-1].detach()
    if count <= 1:
        raise UserError('CPUSyncBatchNorm: more than one value per channel is needed in training')
    mean = sums[:-1] / count
    squares = _SumOverProcesses.apply(own_count * (own_variance + (own_mean - mean).square()))
    return mean, squares / count, count


def use_cpu_sync_batch_norm(model: nn.Module) -> nn.Module:
    """Make every ``nn.SyncBatchNorm`` of a model a :class:`CPUSyncBatchNorm`, in place; return the model.

    A layer stays the same object with the same tensors: an optimizer, or a name that a model keeps, goes on to see it.
    """
    for layer in model.modules():
        if isinstance(layer, nn.SyncBatchNorm):
            layer.__class__ = CPUSyncBatchNorm
    return model


@MODEL_WRAPPERS.register_module()
class CPUDistributedDataParallel(MMDistributedDataParallel):
    """mmengine's wrapper for models on CPUs: no device is chosen, and SyncBN synchronises over gloo."""

    def __init__(self, module: nn.Module, **kwargs) -> None:
        kwargs = dict(broadcast_buffers=False) | kwargs | dict(device_ids=None)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', FutureWarning)  # broadcast_buffers has a new name
            super().__init__(module=use_cpu_sync_batch_norm(module), **kwargs)
