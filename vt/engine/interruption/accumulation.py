"""Gradients that are still being accumulated when a checkpoint is written."""

import torch
from mmengine.dist import all_reduce_params
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner


def is_accumulating(runner: Runner) -> bool:
    """Whether the last iteration left gradients for the next one, with ``optim_wrapper.accumulative_counts``."""
    return isinstance(runner.optim_wrapper, OptimWrapper) and not runner.optim_wrapper.should_update()


def average_gradients(runner: Runner) -> None:
    """Give all processes the mean of their accumulated gradients, which one of them saves.

    Their mean at the end of the accumulation is the same: gradients are averaged once more then.
    """
    if is_accumulating(runner):
        gradients = (parameter.grad for parameter in runner.model.parameters() if parameter.grad is not None)
        all_reduce_params(gradients, op='mean')


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
