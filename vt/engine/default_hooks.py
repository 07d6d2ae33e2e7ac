"""Hooks that every run gets, and classes of mmengine that VT replaces."""

from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.hooks import CheckpointHook, EarlyStoppingHook, LoggerHook
from mmengine.registry import HOOKS, LOOPS, Registry
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop

DEFAULT_HOOKS = dict(
    seed=dict(type='vt.SeedHook'),
    weights_match=dict(type='vt.WeightsMatchHook'),
    resume=dict(type='vt.ResumeHook'),
    schedule=dict(type='vt.ScheduleHook'),
    finite_loss=dict(type='vt.FiniteLossHook'),
    preemption=dict(type='vt.PreemptionHook'),
    sync_buffers=dict(type='vt.SyncBuffersHook'),
    rehearsal=dict(type='vt.RehearsalHook'),
)
# Names of mmengine's default hooks; mmengine accepts None only for these.
OF_MMENGINE = ('runtime_info', 'timer', 'sampler_seed', 'logger', 'param_scheduler', 'checkpoint')
NAMES = (*OF_MMENGINE, *DEFAULT_HOOKS, 'num_classes', 'visualization')
# Classes of mmengine and their replacements.
REPLACEMENTS = {
    CheckpointHook: 'vt.CheckpointHook',
    EarlyStoppingHook: 'vt.EarlyStoppingHook',
    EpochBasedTrainLoop: 'vt.EpochBasedTrainLoop',
}


def enter_defaults(cfg: Config) -> None:
    """Add the default hooks to a config in place, and replace classes of mmengine by those of VT.

    Hooks that the config sets itself are kept; ``default_hooks=dict(NAME=None)`` turns one off.
    """
    scope = cfg.get('default_scope')
    hooks = cfg.setdefault('default_hooks', ConfigDict())
    for name, hook in DEFAULT_HOOKS.items():
        hooks.setdefault(name, ConfigDict(hook))
    for name in {*hooks} - {*OF_MMENGINE}:
        if hooks[name] is None:
            hooks.pop(name)
    hooks.setdefault('checkpoint', ConfigDict(type='CheckpointHook', interval=1))  # as mmengine's default
    logger = hooks.setdefault('logger', ConfigDict(type='LoggerHook'))
    if isinstance(logger, dict) and _find(logger.get('type'), HOOKS, scope) is LoggerHook:
        logger.setdefault('log_metric_by_epoch', False)  # scores lie at iterations, on one axis with losses
    for hook in (*hooks.values(), *(cfg.get('custom_hooks') or ())):
        _replace(hook, HOOKS, scope)
    _enter_loop(cfg.get('train_cfg') or {}, scope)


def _enter_loop(loop: dict, scope: str | None) -> None:
    """Complete a training loop as mmengine does: ``by_epoch`` implies the type; an inherited length is removed."""
    if loop.get('by_epoch') is not None:
        loop.setdefault('type', 'EpochBasedTrainLoop' if loop['by_epoch'] else 'IterBasedTrainLoop')
    if loop.get('type'):
        loop.pop('by_epoch', None)
        kind = _find(loop['type'], LOOPS, scope)
        other = {EpochBasedTrainLoop: 'max_iters', IterBasedTrainLoop: 'max_epochs'}
        for base, length in other.items():
            if isinstance(kind, type) and issubclass(kind, base):
                loop.pop(length, None)
    _replace(loop, LOOPS, scope)


def _replace(part: Any, registry: Registry, scope: str | None) -> None:
    """Replace the type of a part of a config, a name or a class, if it is a class that VT replaces."""
    named = _find(part.get('type'), registry, scope) if isinstance(part, dict) else None
    if isinstance(named, type) and named in REPLACEMENTS:
        part['type'] = REPLACEMENTS[named]


def _find(named: Any, registry: Registry, scope: str | None) -> Any:
    """Return the class of a type that is given as a class or by its name."""
    if not isinstance(named, str):
        return named
    with registry.switch_scope_and_registry(scope) as found:
        return found.get(named)
