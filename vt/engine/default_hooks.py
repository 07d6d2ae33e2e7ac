"""What every run gets so that it survives, whatever its config inherits."""

from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.hooks import CheckpointHook
from mmengine.optim import ZeroRedundancyOptimizer
from mmengine.registry import HOOKS, LOOPS, OPTIMIZERS, RUNNERS, Registry
from mmengine.runner import EpochBasedTrainLoop, FlexibleRunner, IterBasedTrainLoop, Runner

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
# Classes of mmengine, and ours that replace them.
REPLACEMENTS = {
    CheckpointHook: 'vt.CheckpointHook',
    EpochBasedTrainLoop: 'vt.EpochBasedTrainLoop',
    FlexibleRunner: 'vt.FlexibleRunner',
    Runner: 'vt.VTRunner',
    ZeroRedundancyOptimizer: 'vt.ZeroRedundancyOptimizer',
}


def enter_defaults(cfg: Config) -> None:
    """Enter the hooks above, and our replacements of parts of mmengine, however the config names them.

    A config turns a hook off with ``default_hooks=dict(NAME=None)``, and keeps what it names itself.
    """
    scope = cfg.get('default_scope')
    hooks = cfg.setdefault('default_hooks', ConfigDict())
    for name, hook in DEFAULT_HOOKS.items():
        hooks.setdefault(name, ConfigDict(hook))
        if hooks[name] is None:  # mmengine knows None for its own default hooks alone
            hooks.pop(name)
    hooks.setdefault('checkpoint', ConfigDict(type='CheckpointHook'))
    for hook in (*hooks.values(), *(cfg.get('custom_hooks') or ())):
        _replace(hook, HOOKS, scope)
    _replace(cfg, RUNNERS, scope, 'runner_type')
    _replace((cfg.get('optim_wrapper') or {}).get('optimizer'), OPTIMIZERS, scope)
    _enter_loop(cfg.get('train_cfg') or {}, scope)


def _enter_loop(loop: dict, scope: str | None) -> None:
    """As mmengine, which goes by ``by_epoch`` where no type is given; a type may stand beside an inherited length."""
    if loop.get('by_epoch'):
        loop.setdefault('type', 'EpochBasedTrainLoop')
    if loop.get('type'):
        loop.pop('by_epoch', None)
        kind = _find(loop['type'], LOOPS, scope)
        other = {EpochBasedTrainLoop: 'max_iters', IterBasedTrainLoop: 'max_epochs'}
        for base, length in other.items():
            if isinstance(kind, type) and issubclass(kind, base):
                loop.pop(length, None)
    _replace(loop, LOOPS, scope)


def _replace(part: Any, registry: Registry, scope: str | None, key: str = 'type') -> None:
    """Name our class in a part of a config, if it names the one of mmengine that it replaces, by itself or as text."""
    named = _find(part.get(key), registry, scope) if isinstance(part, (dict, Config)) else None
    if isinstance(named, type) and named in REPLACEMENTS:
        part[key] = REPLACEMENTS[named]


def _find(named: Any, registry: Registry, scope: str | None) -> Any:
    """The class of a type, which is itself or its name."""
    if not isinstance(named, str):
        return named
    with registry.switch_scope_and_registry(scope) as found:
        return found.get(named)
