"""Dry run: train, validate, save and draw once (or test once) before a run, so that errors appear at once.

The dry run does not change the run: weights are not updated, buffers such as running means are restored, and the
random numbers of later steps do not depend on it (see :mod:`vt.engine.determinism`).
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy, deepcopy
from itertools import chain
from numbers import Number
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from mmengine.dataset import InfiniteSampler
from mmengine.dist import is_main_process
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, Hook
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner, TestLoop, ValLoop, autocast
from PIL import ExifTags, Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.hooks import RemovableHandle

from vt.checkpoints.reading import load_checkpoint
from vt.checkpoints.weights import unwrap
from vt.engine.config.parameter_rules import check_parameter_rules, find_moving_statistics
from vt.engine.reporting import error_context, files_of
from vt.engine.score_rules import require_rule, rule_of
from vt.errors import UserError
from vt.files import temporary_folder
from vt.registry import HOOKS

MOST_SAMPLES = 8  # samples that are loaded; a larger batch repeats them
MOST_NAMES = 3  # parameters that a message names
MOST_HEADERS = 256  # image files whose size is read to find the widest and the narrowest image
MOST_SAVED = 100_000_000  # parameters of a model whose checkpoint is written and read, which takes a few seconds


@HOOKS.register_module()
class DryRunHook(Hook):
    """Train, validate, save and draw once before a run starts, or test and draw once, without changing the run.

    The batches have the size and shapes of the run, so they need the same memory; the last, smaller batch of an epoch
    is tried, too. The scores for the best checkpoint and for early stopping must be scores of the validation. The
    checkpoint is read again and removed, and so is the figure that a visualization hook draws.
    ``vt train --skip-data-check`` skips the dry run, and so does a resumed run.
    """

    priority = 'VERY_LOW'

    def before_train(self, runner: Runner) -> None:
        """Do the dry run; raises a UserError that names the part in which the first step or validation fails."""
        if runner.iter or not isinstance(runner.optim_wrapper, OptimWrapper):
            return
        log_parameter_rules(runner)
        if runner.cfg.get('compile'):  # the step would be compiled for the dry run
            return
        with unchanged_buffers(runner.model):
            with watch_inputs(runner, 'training'):
                self._train(runner)
            loop, step = runner.val_loop, runner.model.val_step
            with watch_inputs(runner, 'validating'):
                scores = None if loop is None else self._evaluate(loop, step, 'validating', 'after_val_iter')
        if scores is not None:
            groups = runner.param_schedulers or []
            schedulers = chain(*groups.values()) if isinstance(groups, dict) else groups
            for warning in check_scores(scores, runner.hooks, schedulers):
                runner.logger.warning(warning)
        save_once(runner)

    def before_test(self, runner: Runner) -> None:
        """Do the dry run of a test; raises like :meth:`before_train`."""
        if not (runner.cfg.get('speed') or {}).get('compile'):  # the model of the test is a copy, compiled later
            with unchanged_buffers(runner.model), watch_inputs(runner, 'testing'):
                self._evaluate(runner.test_loop, runner.model.test_step, 'testing', 'after_test_iter')

    def _train(self, runner: Any) -> None:
        runner.model.train()
        for number, (name, batch) in enumerate(dry_run_batches(runner.train_dataloader)):
            with error_context(f'training on {name}', model=unwrap(runner.model)):
                runner.model.train_step(batch, NoOpOptimizer(runner.optim_wrapper))
            if number == 0:
                report_unused(runner)
            runner.optim_wrapper.zero_grad()

    @torch.no_grad()
    def _evaluate(
        self, loop: ValLoop | TestLoop, step: Callable[[Any], list], doing: str, drawing: str
    ) -> dict[str, Any]:
        """Return the scores of some batches; their names and types are those of the run, their values are not."""
        model = loop.runner.model.eval()
        evaluator, number = _without_files(loop.evaluator), 0
        for name, batch in dry_run_batches(loop.dataloader):
            with error_context(f'{doing} {name}', model=unwrap(model)):
                with autocast(enabled=loop.fp16):
                    predictions = step(batch)
                evaluator.process(data_samples=predictions, data_batch=batch)
                draw_once(loop.runner, drawing, batch, predictions)
            number += len(predictions)
        with (
            quiet(logging.ERROR),
            error_context(f'{doing} some batches', model=unwrap(model)),
        ):  # without a log of scores
            return evaluator.evaluate(number)


def watch_inputs(runner: Runner, doing: str) -> RemovableHandle:
    """Return a context that warns of the first inputs of the network if they are normalised twice or not at all."""

    def look(preprocessor: nn.Module, args: tuple, data: Any) -> None:
        handle.remove()
        inputs = data.get('inputs') if isinstance(data, dict) else None
        problem = describe_inputs(inputs[:MOST_SAMPLES]) if isinstance(inputs, Tensor) and inputs.ndim > 3 else None
        if problem:
            where = 'data_preprocessor.mean and std, and Normalize and ToTensor in the pipeline'
            runner.logger.warning(f'While {doing}, {problem}: check {where}')

    handle = getattr(unwrap(runner.model), 'data_preprocessor', nn.Identity()).register_forward_hook(look)
    return handle


def describe_inputs(inputs: Tensor) -> str | None:
    """Describe inputs of a network, ``(N, C, ...)``, that are normalised twice or not at all; None for others.

    Accepted are pixels of 0 to 1, dark images, and those of which only a mean was subtracted. Zeros may be padding.
    """
    channels = [channel[channel != 0] for channel in inputs.detach().float().unbind(1)]
    seen = [(float(each.mean()), float(each.std()), float(each.min())) for each in channels if each.numel() > 1]
    mean, deviation = (', '.join(f'{row[k]:.3g}' for row in seen[:MOST_NAMES]) for k in (0, 1))
    words = f'the network gets inputs of mean {mean} and standard deviation {deviation}, not of about 0 and 1'
    if seen and all(deviation < 0.05 and abs(mean) > 20 * deviation for mean, deviation, _ in seen):
        return f'{words}: they seem to be normalised twice'
    if seen and all(mean > 5 and least > -mean / 20 for mean, _, least in seen):
        return f'{words}: they seem not to be normalised'
    return None


def draw_once(runner: Runner, method: str, batch: Any, predictions: list) -> None:
    """Draw one sample of a batch as the visualization hooks of a run will, into a folder that is removed."""
    for hook in [copy(hook) for hook in runner.hooks if getattr(hook, 'enable', False) and hasattr(hook, 'out_dir')]:
        with error_context('drawing a sample'), TemporaryDirectory() as folder:
            settings = {name: copy(value) for name, value in vars(hook).items() if isinstance(value, dict)}
            vars(hook).update(settings, out_dir=Path(folder), interval=1)  # MMPretrain's hook keeps the path in a dict
            getattr(hook, method)(runner, 0, batch | dict(inputs=batch['inputs'][:1]), predictions[:1])


def save_once(runner: Runner) -> None:
    """Write a checkpoint as a run's hook will, into a folder in its work directory that is removed, and read it."""
    hook = next((hook for hook in runner.hooks if isinstance(hook, CheckpointHook)), None)
    if hook is None or sum(parameter.numel() for parameter in runner.model.parameters()) > MOST_SAVED:
        return
    meta = dict(epoch=runner.epoch, iter=runner.iter)
    parts = dict(save_optimizer=hook.save_optimizer, save_param_scheduler=hook.save_param_scheduler, **hook.args)
    with error_context('saving a checkpoint'), temporary_folder(Path(runner.work_dir)) as folder:
        runner.save_checkpoint(str(folder), 'first.pth', meta=meta, **parts)
        if is_main_process():
            load_checkpoint(folder / 'first.pth')


def check_scores(scores: dict[str, Any], hooks: Iterable[Hook], schedulers: Iterable[Any] = ()) -> Iterator[str]:
    """Check that the scores for the best checkpoint, early stopping and schedules are scores of a validation.

    Args:
        scores: scores of a validation.
        hooks: hooks of the run.
        schedulers: schedulers of the run; ``ReduceOnPlateauLR`` and similar ones have a ``monitor``.

    Yields:
        A warning for each rule that contradicts the name of its score.

    Raises:
        UserError: a score is missing, is not a single number, or has no rule.
    """
    numbers = [name for name, value in scores.items() if is_number(value)]
    asked: list[tuple[str, str, str | None]] = []
    for hook in hooks:
        if isinstance(hook, EarlyStoppingHook):
            asked.append(('EarlyStoppingHook.monitor', hook.monitor, hook.rule))
        elif isinstance(hook, CheckpointHook) and hook.save_best:
            asked += [('default_hooks.checkpoint.save_best', *each) for each in zip(hook.key_indicators, hook.rules)]
    asked += [('param_scheduler.monitor', each.monitor, each.rule) for each in schedulers if hasattr(each, 'monitor')]
    for setting, name, rule in asked:
        found = next(iter(scores), None) if name == 'auto' else name
        if found not in numbers:
            words = f'{setting}={name}: {found} is not a scalar score of val_evaluator'
            raise UserError(f'{words}; set one of {", ".join(numbers) or "the scores of a metric that you add"}')
        by_name = rule_of(found) if rule else require_rule(found, setting)
        if rule and by_name not in (rule, None):
            yield f"{setting}={name} has rule='{rule}', although its name says that {by_name} is better"


def is_number(value: Any) -> bool:
    """Return whether a score is a single number."""
    return isinstance(value, Number) or (isinstance(value, Tensor) and value.numel() == 1)


def report_unused(runner: Runner) -> None:
    """Warn of trained parameters that a backward pass gave no gradient; raise a UserError if DDP would stop at them."""
    parameters = unwrap(runner.model).named_parameters()
    unused = [name for name, parameter in parameters if parameter.requires_grad and parameter.grad is None]
    if not unused:
        return
    words = f'the loss does not depend on {len(unused)} parameters: {", ".join(unused[:MOST_NAMES])}'
    words += ', ...' * (len(unused) > MOST_NAMES)
    if not getattr(runner.model, 'find_unused_parameters', True) and not runner.model.static_graph:
        raise UserError(f'{words}: set find_unused_parameters=True, or remove or freeze their modules')
    runner.logger.warning(f'{words}: they are not trained')


def log_parameter_rules(runner: Runner) -> None:
    """Log what ``paramwise_cfg`` applies to, and warnings; raises like :func:`check_parameter_rules`."""
    options = runner.cfg.get('optim_wrapper') or {}
    for line in check_parameter_rules(unwrap(runner.model), options, runner.cfg.filename):
        runner.logger.info(line)
    runner.model.train()
    wrapper: Any = runner.optim_wrapper
    for warning in find_moving_statistics(unwrap(runner.model), wrapper.param_groups):
        runner.logger.warning(warning)


class NoOpOptimizer:
    """Wrapper around the optimizer wrapper of a run, with its precision, that does not update weights."""

    def __init__(self, wrapper: OptimWrapper) -> None:
        self.optim_context = wrapper.optim_context

    def update_params(self, loss: Tensor, *args, **kwargs) -> None:
        """Run the backward pass only."""
        loss.backward()


def dry_run_batches(loader: DataLoader, size: int | None = None) -> Iterator[tuple[str, Any]]:
    """Yield batches of samples spread over the data set of a loader, with their names, without using its sampler.

    Args:
        loader: the loader.
        size: size of the only batch; by default there is one of the loader's size, and one like the last of an epoch if
            that is smaller. If the size is 1, there are two, of the widest and the narrowest image.
    """
    sizes = [size] if size else _batch_sizes(loader)
    samples = _load(loader, _choose(loader.dataset, min(max(sizes[0], len(sizes)), MOST_SAMPLES)))
    for index, number in enumerate(sizes):
        begin, name = index if sizes[0] == 1 else 0, f'the first batch, of {number} samples'
        if number < sizes[0]:
            name = f'the last batch of an epoch, {number} of {sizes[0]} samples (drop_last=True leaves it out)'
        with error_context(f'collating {name}'):
            batch = loader.collate_fn([deepcopy(samples[(begin + k) % len(samples)]) for k in range(number)])
        yield name, batch


def _batch_sizes(loader: DataLoader) -> list[int]:
    """Return the sizes of batches to try: that of all but the last of an epoch, and that of the last."""
    sampler = getattr(loader.sampler, 'sampler', loader.sampler)  # in a run there is one that numbers its samples
    size, is_infinite = loader.batch_size or 1, isinstance(sampler, InfiniteSampler)
    number = len(loader.dataset) if is_infinite else len(loader.sampler)  # the sampler's are those of this process
    first, last = min(size, number), 0 if is_infinite or loader.drop_last else number % size
    return [first, last] if 0 < last < first else [first] * (2 if first == 1 < number else 1)


def _load(loader: DataLoader, places: list[int]) -> list[Any]:
    """Load samples, in a worker process if the loader uses them, so that a worker that is killed is reported."""
    context = dict(multiprocessing_context=loader.multiprocessing_context, worker_init_fn=loader.worker_init_fn)
    one = dict(batch_sampler=[places], collate_fn=list, num_workers=min(1, loader.num_workers))
    (samples,) = DataLoader(loader.dataset, **one, **context)
    return samples


def _choose(dataset: Dataset, most: int) -> list[int]:
    """Choose samples spread over a data set, including the widest and the narrowest of the images it looks at."""
    places = np.linspace(0, len(dataset) - 1, most).astype(int).tolist()
    if most > 1:
        looked = np.linspace(0, len(dataset) - 1, min(len(dataset), MOST_HEADERS)).astype(int).tolist()
        ratios = {place: ratio for place in looked if (ratio := _ratio(dataset, place))}
        if ratios:
            places[:2] = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return places


def _ratio(dataset: Dataset, index: int) -> float | None:
    """Return width / height of a sample's image; None if it is not in a file."""
    with suppress(Exception), Image.open(files_of(dataset, index)[0]) as header:
        ratio = header.width / header.height
        is_turned = header.getexif().get(ExifTags.Base.Orientation, 1) > 4  # rotated by 90 degrees
        return 1 / ratio if is_turned else ratio
    return None


@contextmanager
def unchanged_buffers(model: nn.Module) -> Iterator[None]:
    """Restore the buffers and the mode of a model after the block."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
        for module, training in modes:
            module.training = training


def _without_files(evaluator: Evaluator) -> Evaluator:
    """Copy an evaluator without metrics and options that write predictions to files."""
    evaluator = deepcopy(evaluator)
    evaluator.metrics = [metric for metric in evaluator.metrics if not isinstance(metric, DumpResults)]
    for metric in evaluator.metrics:
        if getattr(metric, 'output_dir', None):
            metric.output_dir = None
    return evaluator


@contextmanager
def quiet(level: int) -> Iterator[None]:
    """Suppress log messages below a level of :mod:`logging`."""
    logger = MMLogger.get_current_instance()
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
