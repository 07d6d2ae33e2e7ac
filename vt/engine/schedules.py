"""Learning rates over a run: schedules that follow its length, and a warning of one that ends before it or after it.

mmengine enters the run's length as ``end`` where a config leaves it out. The schedules here read it: what they are told
in epochs or iterations stays as it is while the run is long enough for it, or is scaled to the run.
"""

import copy
import warnings
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from mmengine.hooks import Hook
from mmengine.optim import scheduler as optim
from mmengine.runner import EpochBasedTrainLoop, Runner

from vt.registry import HOOKS, PARAM_SCHEDULERS


class InEpochs:
    """A schedule whose own lengths become iterations too where ``convert_to_iter_based`` asks for it."""

    @classmethod
    def build_iter_from_epoch(cls, *args, epoch_length: int, **kwargs) -> Any:
        lengths = {name: kwargs[name] * epoch_length for name in ('length', 'of', 'cool_down') if name in kwargs}
        return super().build_iter_from_epoch(*args, epoch_length=epoch_length, **kwargs | lengths)


@PARAM_SCHEDULERS.register_module()
class WarmUpLR(InEpochs, optim.LinearLR):
    """A linear warm-up: the first step has ``start_factor`` of the learning rate, step ``length`` has all of it.

    Args:
        optimizer: whose learning rate it is.
        length: epochs or iterations; one of a single step leaves its first factor after it, and one that is longer than
            the run takes the whole run.
        end: length of the run.
    """

    def __init__(self, optimizer: Any, length: int, end: int, **kwargs) -> None:
        self.length = length
        super().__init__(optimizer, end=max(2, min(length, end)), **kwargs)


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingLR(InEpochs, optim.CosineAnnealingLR):
    """mmengine's, also in a run that ends before ``begin``, where it changes nothing.

    Args:
        optimizer: whose learning rate it is.
        end: length of the run.
        begin: of the cosine.
        cool_down: epochs or iterations at the end of the run that keep the last rate; none where the run is too short.
    """

    def __init__(self, optimizer: Any, end: int, begin: int = 0, cool_down: int = 0, **kwargs) -> None:
        begin, self.cool_down = min(begin, end - 1), cool_down
        super().__init__(optimizer, begin=begin, end=end - cool_down if end - cool_down > begin else end, **kwargs)


@PARAM_SCHEDULERS.register_module()
class MultiStepLR(InEpochs, optim.MultiStepLR):
    """mmengine's, with milestones of a run of ``of`` epochs or iterations: in another run they are scaled to it."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], of: int, end: int, **kwargs) -> None:
        scaled = [max(1, round(milestone * end / of)) for milestone in milestones]
        super().__init__(optimizer, milestones=scaled, end=end, **kwargs)


@PARAM_SCHEDULERS.register_module()
class ExponentialLR(InEpochs, optim.ExponentialLR):
    """mmengine's, with a factor of a run of ``of`` epochs: in another run the learning rate falls as far in all."""

    def __init__(self, optimizer: Any, gamma: float, of: int, end: int, begin: int = 0, **kwargs) -> None:
        # Without an end of its own: it is saved, and a run that is resumed into more epochs goes on falling.
        super().__init__(optimizer, gamma=gamma ** (of / end), begin=min(begin, end - 1), **kwargs)


@HOOKS.register_module()
class ScheduleHook(Hook):
    """Say how the learning rate was scaled, and warn before the first iteration of a schedule that misfits the run.

    It looks at the schedules that will be used, after a checkpoint has been resumed.
    """

    def before_run(self, runner: Runner) -> None:
        if (getattr(runner, 'scaling', None) or {}).get('enable'):  # a config's own runner leaves it to mmengine
            runner.logger.info(describe_scaling(runner))

    def before_train(self, runner: Runner) -> None:
        groups = runner.param_schedulers or []
        for schedulers in groups.values() if isinstance(groups, dict) else [groups]:
            rates = [scheduler for scheduler in schedulers if scheduler.param_name == 'lr']
            misfits = list(find_misfits(rates, runner))
            if misfits:
                rate = last_rate(rates, runner)
                for misfit in misfits:
                    runner.logger.warning(f'{misfit}; the learning rate of the last iteration is {rate:.3g}')


def find_misfits(schedulers: Sequence[Any], runner: Runner) -> Iterator[str]:
    """What does not fit: a schedule that ends before the run, or after it, or that has no step to change anything.

    A rate that stays where a warm-up or steps have led it is no misfit, and nor is one that falls without an end.
    """
    length, total = epoch_length(runner), runner.max_iters
    unit, scale = ('epochs', length) if length else ('iterations', 1)
    ends = []
    for scheduler in schedulers:
        name, steps = type(scheduler).__name__, length if scheduler.by_epoch else 1
        if not steps:
            yield f'{name} counts epochs and the run counts iterations, so it does nothing: set by_epoch=False'
            continue
        end = _end(scheduler, total // steps) * steps
        if end > total:
            yield f'{name} ends after {end / scale:g} {unit}, and the run after {total / scale:g}'
        elif scheduler.end - scheduler.begin == 1 and isinstance(scheduler, CONTINUOUS):
            is_late = (scheduler.begin + 1) * steps == total
            what = 'begins with the last step of the run' if is_late else 'has a single step'
            yield f'{name} {what}, so it never leaves its first value'
        else:
            ends.append((end, _leads_to_a_constant(scheduler), name))
    end, is_constant, name = max(ends, default=(total, True, ''))
    if end < total and not is_constant:
        yield f'{name} ends after {end / scale:g} of {total / scale:g} {unit}'


CONTINUOUS = (
    optim.ConstantParamScheduler,
    optim.CosineAnnealingParamScheduler,
    optim.LinearParamScheduler,
    optim.PolyParamScheduler,
)


def _end(scheduler: Any, total: int) -> int:
    """The step after the last one of which it changes the rate; ``total`` of one that changes it without an end."""
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
    """Whether it is meant to leave a rate for the rest of the run: a warm-up, steps."""
    if isinstance(scheduler, optim.LinearParamScheduler):
        return scheduler.end_factor >= scheduler.start_factor
    if getattr(scheduler, 'cool_down', 0):
        return True
    return isinstance(scheduler, (optim.ConstantParamScheduler, optim.MultiStepParamScheduler))


def last_rate(schedulers: Sequence[Any], runner: Runner) -> float:
    """The learning rate of a run's last iteration, by taking all steps of copies of its schedulers.

    With rates of single parameters it is the one that these are multiples of.
    """
    copies = [copy.copy(scheduler) for scheduler in schedulers]
    for scheduler in copies:
        scheduler.base_values = getattr(scheduler, 'base_values', [])[-1:]
    way = runner.iter, runner.max_iters - 1, epoch_length(runner)
    return float(rates_after(copies, schedulers[0].optimizer.param_groups[-1], way)[0])


def rates_after(schedulers: Sequence[Any], group: dict, *ways: tuple[int, int, int]) -> list[float]:
    """The learning rate after each of some ways, as :func:`advance` takes them, of copies that leave all as it is.

    ``group`` is one of parameters, with its learning rate before the ways; a way is begin, end and epoch length.
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
    """Step schedulers from one iteration to another as mmengine's hook does; epochs have ``length`` iterations."""
    ordered = sorted(schedulers, key=lambda scheduler: scheduler.by_epoch)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # that the optimizer has not stepped
        for iteration in range(begin + 1, end + 1):
            for scheduler in ordered:
                if not scheduler.by_epoch or (length and iteration % length == 0):
                    scheduler.step()


def epoch_length(runner: Runner) -> int:
    """Iterations of an epoch; 0 in a loop over iterations."""
    return len(runner.train_dataloader) if isinstance(runner.train_loop, EpochBasedTrainLoop) else 0


def count_accumulation(auto_scale_lr: dict | None, optim_wrapper: Any) -> dict | None:
    """``auto_scale_lr`` for mmengine, which divides the batch of one iteration by ``base_batch_size``.

    A step of the optimizer has as many of these batches as ``accumulative_counts`` says.
    """
    accumulated = optim_wrapper.get('accumulative_counts', 1) if isinstance(optim_wrapper, dict) else 1
    if not auto_scale_lr or not auto_scale_lr.get('base_batch_size') or accumulated == 1:
        return auto_scale_lr
    return dict(auto_scale_lr, base_batch_size=auto_scale_lr['base_batch_size'] / accumulated)


def describe_scaling(runner: Runner) -> str:
    """From what to what ``auto_scale_lr`` scaled the learning rate, and why."""
    wrapper, base = runner.cfg.optim_wrapper, runner.cfg.auto_scale_lr['base_batch_size']
    batch, accumulated = runner.train_dataloader.batch_size, wrapper.get('accumulative_counts', 1)
    images = runner.world_size * batch * accumulated
    lr = (wrapper.get('optimizer') or {}).get('lr')
    change = f'by {images / base:g}' if lr is None else f'from {lr:g} to {lr * images / base:g}'
    return (
        f'Learning rate scaled {change}: it is for a batch of {base}, and a step has {images} images '
        f'({runner.world_size} processes x {batch} images x {accumulated} accumulated batches)'
    )
