"""Learning rate schedules that adapt to the length of a run, and warnings about schedules that do not fit it.

mmengine sets ``end`` of a schedule to the length of the run if the config does not set it. The schedules here use it to
limit or scale their lengths to the run.
"""

import copy
import warnings
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from mmengine.hooks import CheckpointHook, Hook
from mmengine.optim import scheduler as optim
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, Runner

from vt.registry import HOOKS, PARAM_SCHEDULERS


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


def end_with_run(scheduler: Any, end: Fraction) -> Any:
    """Return configs of schedules in which those that are converted to iterations have an end, in epochs."""
    if isinstance(scheduler, (list, tuple)):
        return [end_with_run(each, end) for each in scheduler]
    if isinstance(scheduler, dict) and 'type' not in scheduler:  # of several optimizers
        return {name: end_with_run(each, end) for name, each in scheduler.items()}
    is_converted = isinstance(scheduler, dict) and scheduler.get('convert_to_iter_based')
    return dict(scheduler, end=scheduler.get('end', end)) if is_converted else scheduler


@HOOKS.register_module()
class ScheduleHook(Hook):
    """Warn before training if a schedule does not fit the run.

    The check uses the schedules of the run after a checkpoint has been resumed. If groups of parameters have factors of
    their own, the rate is that without a factor.
    """

    def before_train(self, runner: Runner) -> None:
        for misfit in find_other_units(runner):
            runner.logger.warning(misfit)
        groups: Any = runner.param_schedulers or []
        for schedulers in groups.values() if isinstance(groups, dict) else [groups]:
            rates = [scheduler for scheduler in schedulers if scheduler.param_name == 'lr']
            misfits = list(find_misfits(rates, runner))
            if misfits:
                way = runner.iter, runner.max_iters - 1, epoch_length(runner)
                (rate,) = rates_after(rates, rates[0].optimizer.param_groups, way)
                for misfit in misfits:
                    runner.logger.warning(f'{misfit}; the learning rate of the last iteration is {rate:.3g}')


def find_misfits(schedulers: Sequence[Any], runner: Runner) -> Iterator[str]:
    """Yield a message for each schedule that ends before or after the run, or that has no effect.

    A rate that stays constant after a warm-up or after steps is accepted, and so is a decay without end.
    """
    length, total = epoch_length(runner), runner.max_iters
    unit, scale = ('epochs', length) if length else ('iterations', 1)
    ends = []
    for scheduler in schedulers:
        name, steps = type(scheduler).__name__, length if scheduler.by_epoch else 1
        if isinstance(scheduler, optim.ReduceOnPlateauParamScheduler):  # it counts validations, in any loop
            ends.append((total, True, name))
            continue
        if not steps:
            yield f'{name} counts epochs but the run counts iterations, so it has no effect: set by_epoch=False'
            continue
        end = _end(scheduler, total // steps) * steps
        if end > total:
            yield f'{name} ends after {end / scale:g} {unit}, but the run after {total / scale:g}'
        elif scheduler.end - scheduler.begin == 1 and isinstance(scheduler, CONTINUOUS):
            is_late = (scheduler.begin + 1) * steps == total
            what = 'begins at the last step of the run' if is_late else 'has a single step'
            yield f'{name} {what}, so it keeps its first value'
        else:
            ends.append((end, _leads_to_a_constant(scheduler), name))
    end, is_constant, name = max(ends, default=(total, True, ''))
    if end < total and not is_constant:
        yield f'{name} ends after {end / scale:g} of {total / scale:g} {unit}'


def find_other_units(runner: Runner) -> Iterator[str]:
    """Yield a message for each setting that counts epochs in a run by iterations, or the other way round."""
    loop, total = runner.train_loop, runner.max_iters
    is_by_iteration = isinstance(loop, IterBasedTrainLoop)
    if is_by_iteration and runner.val_loop is not None and loop.val_interval == 1 < total:
        yield 'train_cfg.val_interval=1 validates after each iteration: set a larger number of iterations'
    for hook in runner.hooks:
        name = type(hook).__name__
        if isinstance(hook, CheckpointHook) and not (is_by_iteration or hook.by_epoch) and hook.interval >= total:
            yield f'{name}.interval={hook.interval} counts iterations, and the run has {total}: set by_epoch=True'
        is_own = not type(hook).__module__.startswith(('mmengine.', 'vt.'))
        if is_by_iteration and is_own and {'before_train_epoch', 'after_train_epoch'} & {*vars(type(hook))}:
            yield f'{name} acts once per epoch, and a run by iterations has a single epoch: it may have no effect'


CONTINUOUS = (
    optim.ConstantParamScheduler,
    optim.CosineAnnealingParamScheduler,
    optim.LinearParamScheduler,
    optim.PolyParamScheduler,
)


def _end(scheduler: Any, total: int) -> int:
    """Return the step after the last change of the rate, or ``total`` for a schedule without end."""
    if scheduler.end < total:
        return scheduler.end
    match scheduler:
        case optim.CosineAnnealingParamScheduler():
            return scheduler.begin + scheduler.T_max
        case optim.CosineRestartParamScheduler():
            return scheduler.begin + sum(scheduler.periods)
        case optim.OneCycleParamScheduler():
            return scheduler.begin + scheduler.total_steps
        case optim.MultiStepParamScheduler():
            return scheduler.begin + max(scheduler.milestones, default=0) + 1
        case WarmUpLR():
            return max(scheduler.end, scheduler.length)
        case optim.ConstantParamScheduler() | optim.LinearParamScheduler() | optim.PolyParamScheduler():
            return scheduler.end
    return total


def _leads_to_a_constant(scheduler: Any) -> bool:
    """Return whether a schedule is meant to keep its last rate for the rest of the run, as a warm-up is."""
    if isinstance(scheduler, optim.LinearParamScheduler):
        return scheduler.end_factor >= scheduler.start_factor
    if getattr(scheduler, 'cool_down', 0):
        return True
    return isinstance(scheduler, (optim.ConstantParamScheduler, optim.MultiStepParamScheduler))


def rates_after(schedulers: Sequence[Any], groups: Sequence[dict], *ways: tuple[int, int, int]) -> list[float]:
    """Return the learning rate of the last group after each of some ranges of iterations, by copies of schedulers.

    Args:
        schedulers: schedulers of the learning rate; they are not changed.
        groups: the first parameter groups with their learning rates before the first range; they are not changed.
        *ways: ranges as (begin, end, epoch length), taken one after the other, see :func:`advance`.
    """
    optimizer = SimpleNamespace(param_groups=[dict(groups[-1])], step=None, defaults=groups[-1])
    copies = [copy.copy(scheduler) for scheduler in schedulers]
    for scheduler in copies:
        scheduler.optimizer = optimizer
        scheduler.base_values = getattr(scheduler, 'base_values', [])[len(groups) - 1 :]  # ReduceOnPlateauLR has none
    rates = []
    for way in ways:
        advance(copies, *way)
        rates.append(optimizer.param_groups[0].get('lr'))
    return rates


def planned_rates(runner: Runner, points: int) -> list[dict[str, float]]:
    """Return the learning rate by epoch or iteration that a run plans at some points; its optimizer is built for it."""
    runner._train_loop = runner.build_train_loop(runner.cfg.train_cfg)
    wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.scale_lr(wrapper, runner.auto_scale_lr)
    runner.optim_wrapper, groups = wrapper, wrapper.param_groups
    built: Any = runner.build_param_scheduler(runner.param_schedulers or [])
    schedulers = [each for each in built if each.param_name == 'lr']
    ends = sorted({round(share * runner.max_iters) for share in np.linspace(0, 1, points + 1)})
    length = epoch_length(runner)
    rates = rates_after(schedulers, groups, *((begin, end, length) for begin, end in pairwise([0, *ends])))
    unit, scale = ('epoch', length) if length else ('iteration', 1)
    return [{unit: end / scale, 'lr': rate} for end, rate in zip(ends, rates)]


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
