"""Gradients that are still being accumulated when a checkpoint is written."""

import torch
from mmengine.dist import all_reduce, all_reduce_params
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch.distributed.fsdp import FullyShardedDataParallel


def is_accumulating(runner: Runner) -> bool:
    """Whether the last iteration left gradients for the next one, with ``optim_wrapper.accumulative_counts``.

    Never with FSDP, whose gradients are parts that differ from process to process: they are not saved.
    """
    wrapper = runner.optim_wrapper
    is_sharded = isinstance(runner.model, FullyShardedDataParallel)
    return isinstance(wrapper, OptimWrapper) and not wrapper.should_update() and not is_sharded


def average_gradients(runner: Runner) -> None:
    """Give all processes the mean of their accumulated gradients, which one of them saves.

    Their mean at the end of the accumulation is the same: gradients are averaged once more then. A weight that only
    some processes used so far has a gradient of zero in the others.
    """
    if runner.world_size == 1 or not is_accumulating(runner):
        return
    parameters = [parameter for parameter in runner.model.parameters() if parameter.requires_grad]
    used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    all_reduce(used, 'max')
    for parameter, is_used in zip(parameters, used.tolist()):
        if is_used and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    all_reduce_params([parameter.grad for parameter in parameters if parameter.grad is not None], op='mean')


def accumulated_gradients(runner: Runner) -> list[torch.Tensor | None] | None:
    """Each parameter's gradient, on the CPU; None after a step of the optimizer, when none is left."""
    if not is_accumulating(runner):
        return None
    gradients = [parameter.grad for parameter in runner.model.parameters()]
    return [None if gradient is None else gradient.cpu() for gradient in gradients]


def restore_gradients(runner: Runner, gradients: list[torch.Tensor | None]) -> None:
    """Give parameters the gradients of :func:`accumulated_gradients`."""
    for parameter, gradient in zip(runner.model.parameters(), gradients, strict=True):
        parameter.grad = None if gradient is None else torch.empty_like(parameter).copy_(gradient)
