"""What every run gets so that it survives, whatever its config inherits."""

from mmengine.config import Config, ConfigDict

DEFAULT_HOOKS = dict(
    seed=dict(type='vt.SeedHook'),
    weights_match=dict(type='vt.WeightsMatchHook'),
    resume=dict(type='vt.ResumeHook'),
    finite_loss=dict(type='vt.FiniteLossHook'),
    preemption=dict(type='vt.PreemptionHook'),
    sync_buffers=dict(type='vt.SyncBuffersHook'),
)


def enter_defaults(cfg: Config) -> None:
    """Enter the hooks above and our twins of mmengine's checkpoint hook, loop over epochs and flexible runner.

    A config turns a hook off with ``default_hooks=dict(NAME=None)``, and keeps what it names itself.
    """
    hooks = cfg.setdefault('default_hooks', ConfigDict())
    for name, hook in DEFAULT_HOOKS.items():
        hooks.setdefault(name, ConfigDict(hook))
        if hooks[name] is None:  # mmengine knows None for its own default hooks alone
            hooks.pop(name)
    checkpoint = hooks.setdefault('checkpoint', ConfigDict(type='CheckpointHook'))
    if isinstance(checkpoint, dict) and checkpoint.get('type', 'CheckpointHook') == 'CheckpointHook':
        checkpoint.type = 'vt.CheckpointHook'
    if cfg.get('runner_type') == 'FlexibleRunner':
        cfg.runner_type = 'vt.FlexibleRunner'
    loop = cfg.get('train_cfg') or {}
    if loop.get('by_epoch') or loop.get('type') == 'EpochBasedTrainLoop':
        loop.pop('by_epoch', None)
        loop.type = 'vt.EpochBasedTrainLoop'
