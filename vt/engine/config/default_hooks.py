"""Hooks that every run gets, and classes of mmengine that VT replaces."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.dataset import DefaultSampler, InfiniteSampler
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, LoggerHook
from mmengine.optim.scheduler import ReduceOnPlateauParamScheduler
from mmengine.registry import DATA_SAMPLERS, HOOKS, LOOPS, PARAM_SCHEDULERS, Registry
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop

from vt.engine.score_rules import require_rule
from vt.errors import UserError

DEFAULT_HOOKS = dict(
    seed=dict(type='vt.SeedHook'),
    weights_match=dict(type='vt.WeightsMatchHook'),
    resume=dict(type='vt.ResumeHook'),
    schedule=dict(type='vt.ScheduleHook'),
    finite_loss=dict(type='vt.FiniteLossHook'),
    preemption=dict(type='vt.PreemptionHook'),
    sync_buffers=dict(type='vt.SyncBuffersHook'),
    training_images=dict(type='vt.TrainingImagesHook'),
    dry_run=dict(type='vt.DryRunHook'),
    console=dict(type='vt.ConsoleHook'),
    curves=dict(type='vt.CurvesHook'),
)
# Names of mmengine's default hooks; mmengine accepts None only for these.
OF_MMENGINE = ('runtime_info', 'timer', 'sampler_seed', 'logger', 'param_scheduler', 'checkpoint')
HOOK_NAMES = (*OF_MMENGINE, *DEFAULT_HOOKS, 'num_classes', 'visualization')
SECTIONS = {'default_hooks': HOOKS, 'custom_hooks': HOOKS, 'param_scheduler': PARAM_SCHEDULERS}
# What compares scores, and its argument that names them.
COMPARED = {CheckpointHook: 'save_best', EarlyStoppingHook: 'monitor', ReduceOnPlateauParamScheduler: 'monitor'}
# Of a loop over epochs, which an infinite one would not end; of one over iterations, which can skip samples on resume.
SAMPLERS = (DefaultSampler, InfiniteSampler)
# Classes of mmengine and their replacements.
REPLACEMENTS = {
    CheckpointHook: 'vt.CheckpointHook',
    EarlyStoppingHook: 'vt.EarlyStoppingHook',
    EpochBasedTrainLoop: 'vt.EpochBasedTrainLoop',
}


def apply_defaults(cfg: Config) -> None:
    """Add the default hooks to a config in place, and replace classes of mmengine by those of VT.

    Hooks that the config sets itself are kept; ``default_hooks=dict(NAME=None)`` turns one off. What compares scores
    gets its rule, and what counts gets the unit of the training loop.

    Raises:
        UserError: a rule or a unit is not clear.
    """
    scope = cfg.get('default_scope')
    hooks = cfg.setdefault('default_hooks', ConfigDict())
    for name, hook in DEFAULT_HOOKS.items():
        hooks.setdefault(name, ConfigDict(hook))
    for name in {*hooks} - {*OF_MMENGINE}:
        if hooks[name] is None:
            hooks.pop(name)
    hooks.setdefault('checkpoint', ConfigDict(type='CheckpointHook', interval=1))  # as mmengine's default
    hooks.setdefault('logger', ConfigDict(type='LoggerHook'))
    parts = [found for section in SECTIONS for found in _find_parts(section, cfg.get(section), scope)]
    for _, part, kind in parts:
        part['type'] = REPLACEMENTS.get(kind, part['type'])
        if kind is LoggerHook:
            part.setdefault('log_metric_by_epoch', False)  # scores lie at iterations, on one axis with losses
    _enter_rules(parts)
    loop = cfg.get('train_cfg') or {}
    by_epoch = _enter_loop(loop, scope)
    if by_epoch is None:
        return
    sampler, (own, other) = (cfg.get('train_dataloader') or {}).get('sampler'), SAMPLERS[:: 1 if by_epoch else -1]
    if isinstance(sampler, dict) and _find(sampler.get('type'), DATA_SAMPLERS, scope) is other:
        sampler['type'] = own.__name__
        sampler.pop('round_up', None)
    if not by_epoch:
        cfg.log_processor = ConfigDict(cfg.get('log_processor') or {}, by_epoch=False)
        _enter_iterations(parts, loop.get('val_interval', 1000))


def _find_parts(path: str, value: Any, scope: str | None) -> Iterator[tuple[str, dict, type]]:
    """Yield the parts in a section of a config: path, config and class."""
    kind = None
    if isinstance(value, dict) and 'type' in value:
        kind = _find(value['type'], SECTIONS[path.partition('.')[0]], scope)
    if isinstance(kind, type):
        yield path, value, kind
    elif isinstance(value, (dict, list, tuple)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _find_parts(f'{path}.{key}', part, scope)


def _enter_rules(parts: Sequence[tuple[str, dict, type]]) -> None:
    """Set the rules that are not set, by the names of the scores; mmengine's of ``ReduceOnPlateauLR`` is ``'less'``."""
    for path, part, kind in parts:
        key = next((key for base, key in COMPARED.items() if issubclass(kind, base)), '')
        scores = part.get(key)
        if scores in (None, 'auto', ['auto']) or part.get('rule') or part.keys() & {'greater_keys', 'less_keys'}:
            continue
        names = [scores] if isinstance(scores, str) else scores
        rules = [require_rule(name, f'{path}.{key}') for name in names]
        part['rule'] = rules[0] if isinstance(scores, str) else rules


def _enter_loop(loop: dict, scope: str | None) -> bool | None:
    """Complete a training loop in place: ``by_epoch`` implies the type, as in mmengine; an inherited length is removed.

    A config that inherits adds its keys at the end: the last one of ``type`` and ``by_epoch`` counts, and must fit the
    last one of two lengths.

    Returns:
        Whether the loop counts epochs; None for a loop of another kind.

    Raises:
        UserError: the length is that of the other kind of loop, or validations begin after the end.
    """
    kinds, keys, by_epoch = {True: EpochBasedTrainLoop, False: IterBasedTrainLoop}, [*loop], loop.pop('by_epoch', None)
    kind = _find(loop.get('type'), LOOPS, scope)
    own = next((unit for unit, base in kinds.items() if isinstance(kind, type) and issubclass(kind, base)), None)
    if by_epoch is not None and (
        kind is None or (own == (not by_epoch) and keys.index('by_epoch') > keys.index('type'))
    ):
        own, kind = by_epoch, kinds[by_epoch]
        loop['type'] = kind.__name__
    if own is None:
        return None
    length, other = ('max_epochs', 'max_iters') if own else ('max_iters', 'max_epochs')
    if other in keys and (length not in keys or keys.index(other) > keys.index(length)):
        words = f'train_cfg.{other}={loop[other]} has no effect in {kinds[own].__name__}'
        raise UserError(f'{words}: set {length}, or by_epoch={not own} too')
    if loop.pop(other, None) and own and loop.get('val_interval', 1) > loop[length]:
        loop['val_interval'] = 1  # an inherited one counts iterations
    if loop.get('val_begin', 0) > loop.get(length, math.inf):
        words = f'train_cfg.val_begin={loop["val_begin"]}, but the run has {length}={loop[length]}'
        raise UserError(f'{words}: it would not validate; lower val_begin')
    loop['type'] = REPLACEMENTS.get(kind, loop['type'])
    return own


def _enter_iterations(parts: Sequence[tuple[str, dict, type]], interval: int) -> None:
    """Let hooks count iterations, with a checkpoint at each validation instead of each epoch."""
    for path, hook, kind in parts:
        if issubclass(kind, LoggerHook):
            hook['log_metric_by_epoch'] = False
        if issubclass(kind, CheckpointHook) and hook.get('by_epoch') is not False:
            every = hook.get('interval', -1)
            if hook.get('by_epoch') or hook.get('save_begin') or every not in (1, -1):
                words = f'{path} counts epochs (interval={every}), but the run counts iterations'
                raise UserError(f'{words}: set {path}.by_epoch=False, and give its numbers in iterations')
            hook.update(by_epoch=False, interval=interval if every == 1 else every)


def _find(named: Any, registry: Registry, scope: str | None) -> Any:
    """Return the class of a type that is given as a class or by its name."""
    if not isinstance(named, str):
        return named
    with registry.switch_scope_and_registry(scope) as found:
        return found.get(named)
