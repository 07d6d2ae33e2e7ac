"""Copies of a model in several processes on CPUs, and batch normalisation over all their batches.

PyTorch's own SyncBatchNorm needs GPUs.
"""

import warnings
from typing import Any

import torch
from mmengine.model import MMDistributedDataParallel
from torch import distributed, nn

from vt.errors import UserError
from vt.private_names import BatchNorm
from vt.registry import MODEL_WRAPPERS


class CPUSyncBatchNorm(nn.BatchNorm2d, BatchNorm):  # the initialisers of mmengine ask for direct bases
    """``nn.SyncBatchNorm`` over gloo: mean and variance are computed over the batches of all processes.

    Batches may differ in size. Parameters, buffers and their names are those of BN. In evaluation and with one process
    it equals BN.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalise maps ``(N, C, ...)``, and update the running statistics in training."""
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
    def _update_running(self: Any, mean: torch.Tensor, variance: torch.Tensor) -> None:
        if not self.track_running_stats:
            return
        self.num_batches_tracked.add_(1)
        momentum = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


class _SumOverProcesses(torch.autograd.Function):
    """Sum over processes; the gradient of each process is the sum of the gradients of all."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return _SumOverProcesses.apply(*gradients)


def _statistics_of_all(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return mean and biased variance of each channel ``(C,)``, and the number of values per channel, of all processes.

    Squared differences from the common mean are summed, since a difference of two large sums would be inaccurate for a
    small variance.
    """
    own_count = values.new_tensor([values.numel() // values.shape[1]])
    own_variance, own_mean = torch.var_mean(values, (0, 2, 3), correction=0)
    sums = _SumOverProcesses.apply(torch.cat([own_mean * own_count, own_count]))
    count = sums[-1].detach()
    if count <= 1:
        raise UserError('SyncBN needs more than one value per channel in training: raise batch_size')
    mean = sums[:-1] / count
    squares = _SumOverProcesses.apply(own_count * (own_variance + (own_mean - mean).square()))
    return mean, squares / count, count


def use_cpu_sync_batch_norm(model: nn.Module) -> nn.Module:
    """Convert every ``nn.SyncBatchNorm`` of a model to :class:`CPUSyncBatchNorm` in place; return the model.

    Layers stay the same objects with the same tensors, so references to them remain valid.
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
