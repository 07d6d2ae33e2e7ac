"""Learning rate schedules that adapt to the length of a run.

mmengine sets ``end`` of a schedule to the length of the run if the config does not set it. The schedules here use it to
limit or scale their lengths to the run.
"""

import copy
import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from mmengine.optim import scheduler as optim
from mmengine.runner import EpochBasedTrainLoop, Runner

from vt.registry import PARAM_SCHEDULERS


class InEpochs:
    """Mixin that also converts the lengths of a schedule to iterations with ``convert_to_iter_based``."""

    @classmethod
    def build_iter_from_epoch(cls, *args, epoch_length: int, **kwargs) -> Any:
        lengths = {name: kwargs[name] * epoch_length for name in ('length', 'of', 'cool_down') if name in kwargs}
        return super().build_iter_from_epoch(*args, epoch_length=epoch_length, **kwargs | lengths)


@PARAM_SCHEDULERS.register_module()
class WarmUpLR(InEpochs, optim.LinearLR):
    """Linear warm-up from ``start_factor`` times the learning rate at the first step to all of it at step ``length``.

    Args:
        optimizer: optimizer whose learning rate is scheduled.
        length: length of the warm-up in epochs or iterations, at most that of the run. A warm-up of length 1 has its
            first factor for one step.
        end: length of the run.
    """

    def __init__(self, optimizer: Any, length: int, end: int, **kwargs) -> None:
        self.length = length
        super().__init__(optimizer, end=max(2, min(length, end)), **kwargs)


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingLR(InEpochs, optim.CosineAnnealingLR):
    """mmengine's cosine schedule with a cool-down; it changes nothing in a run that ends before ``begin``.

    Args:
        optimizer: optimizer whose learning rate is scheduled.
        end: length of the run.
        begin: first epoch or iteration of the cosine.
        cool_down: number of epochs or iterations at the end of the run that keep the last rate; 0 if the run is too
            short for it.
    """

    def __init__(self, optimizer: Any, end: int, begin: int = 0, cool_down: int = 0, **kwargs) -> None:
        begin, self.cool_down = min(begin, end - 1), cool_down
        super().__init__(optimizer, begin=begin, end=end - cool_down if end - cool_down > begin else end, **kwargs)


@PARAM_SCHEDULERS.register_module()
class MultiStepLR(InEpochs, optim.MultiStepLR):
    """mmengine's step schedule, with ``milestones`` for a run of length ``of``, scaled to the length of the run."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], of: int, end: int, **kwargs) -> None:
        scaled = [max(1, round(milestone * end / of)) for milestone in milestones]
        super().__init__(optimizer, milestones=scaled, end=end, **kwargs)


@PARAM_SCHEDULERS.register_module()
class ExponentialLR(InEpochs, optim.ExponentialLR):
    """mmengine's exponential schedule with ``gamma`` for a run of ``of`` epochs; any run has the same total decay."""

    def __init__(self, optimizer: Any, gamma: float, of: int, end: int, begin: int = 0, **kwargs) -> None:
        # end is not passed on: it would be saved, and the decay would stop in a run that is resumed for more epochs.
        super().__init__(optimizer, gamma=gamma ** (of / end), begin=min(begin, end - 1), **kwargs)


def rates_after(schedulers: Sequence[Any], group: dict, *ways: tuple[int, int, int]) -> list[float]:
    """Return the learning rate after each of some ranges of iterations, by stepping copies of schedulers.

    Args:
        schedulers: schedulers of the learning rate; they are not changed.
        group: parameter group with its learning rate before the first range; it is not changed.
        *ways: ranges as (begin, end, epoch length), taken one after the other, see :func:`advance`.
    """
    optimizer = SimpleNamespace(param_groups=[dict(group)], step=None, defaults=group)
    copies = [copy.copy(scheduler) for scheduler in schedulers]
    for scheduler in copies:
        scheduler.optimizer = optimizer
    rates = []
    for way in ways:
        advance(copies, *way)
        rates.append(optimizer.param_groups[0].get('lr'))
    return rates


def advance(schedulers: Sequence[Any], begin: int, end: int, length: int) -> None:
    """Step schedulers from iteration ``begin`` to ``end`` as mmengine's hook does.

    ``length`` is the number of iterations of an epoch, 0 in a loop over iterations.
    """
    ordered = sorted(schedulers, key=lambda scheduler: scheduler.by_epoch)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # PyTorch warns that the optimizer has not stepped
        for iteration in range(begin + 1, end + 1):
            for scheduler in ordered:
                if not scheduler.by_epoch or (length and iteration % length == 0):
                    scheduler.step()


def epoch_length(runner: Runner) -> int:
    """Return the number of iterations of an epoch; 0 in a loop over iterations."""
    return len(runner.train_dataloader) if isinstance(runner.train_loop, EpochBasedTrainLoop) else 0


def count_accumulation(auto_scale_lr: dict | None, optim_wrapper: Any) -> dict | None:
    """Adapt ``auto_scale_lr`` to gradient accumulation, which mmengine ignores.

    mmengine divides the batch size of one iteration by ``base_batch_size``; with accumulation, a step of the optimizer
    uses ``accumulative_counts`` such batches.
    """
    accumulated = optim_wrapper.get('accumulative_counts', 1) if isinstance(optim_wrapper, dict) else 1
    if not auto_scale_lr or not auto_scale_lr.get('base_batch_size') or accumulated == 1:
        return auto_scale_lr
    return dict(auto_scale_lr, base_batch_size=auto_scale_lr['base_batch_size'] / accumulated)
