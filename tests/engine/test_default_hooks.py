"""What a run gets is found by class, however a config names it."""

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, LoggerHook
from mmengine.runner import EpochBasedTrainLoop

from vt.engine.default_hooks import enter_defaults


def entered(**settings):
    cfg = Config(settings)
    enter_defaults(cfg)
    return cfg


@pytest.mark.parametrize('scope', ['mmengine', 'mmpretrain'])
@pytest.mark.parametrize('given', [lambda cls: cls, lambda cls: cls.__name__, lambda cls: f'mmengine.{cls.__name__}'])
def test_a_class_a_name_and_one_with_a_prefix(given, scope):
    cfg = entered(
        default_scope=scope,
        default_hooks=dict(checkpoint=dict(type=given(CheckpointHook), interval=2)),
        custom_hooks=[dict(type=given(CheckpointHook)), dict(type='EMAHook')],
        train_cfg=dict(type=given(EpochBasedTrainLoop), max_epochs=1),
    )
    assert cfg.default_hooks.checkpoint == dict(type='vt.CheckpointHook', interval=2)
    assert [hook.type for hook in cfg.custom_hooks] == ['vt.CheckpointHook', 'EMAHook']
    assert cfg.train_cfg == dict(type='vt.EpochBasedTrainLoop', max_epochs=1)


def test_hooks_that_a_run_may_have():
    cfg = entered(
        default_hooks=dict(early=dict(type='EarlyStoppingHook', monitor='a'), timer=None, visualization=None),
        custom_hooks=[*(dict(type='EarlyStoppingHook', monitor=name) for name in 'ab'), LoggerHook()],
    )
    assert [name for name, hook in cfg.default_hooks.items() if hook is None] == ['timer']
    assert [hook.type for hook in (cfg.default_hooks.early, *cfg.custom_hooks[:2])] == ['vt.EarlyStoppingHook'] * 3
    assert entered(custom_hooks=None).custom_hooks is None


def test_what_a_config_names_itself_stays():
    class OwnHook(CheckpointHook):
        """A subclass."""

    cfg = entered(default_hooks=dict(checkpoint=dict(type=OwnHook), seed=None, timer=None))
    assert cfg.default_hooks.checkpoint.type is OwnHook
    assert 'seed' not in cfg.default_hooks
    assert entered(default_hooks=dict(checkpoint=None)).default_hooks.checkpoint is None
    assert entered().default_hooks.checkpoint.type == 'vt.CheckpointHook'


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        (dict(by_epoch=True, max_epochs=1), dict(type='vt.EpochBasedTrainLoop', max_epochs=1)),
        (dict(by_epoch=True, type='IterBasedTrainLoop', max_iters=1), dict(type='IterBasedTrainLoop', max_iters=1)),
        (None, None),
    ],
)
def test_a_type_of_loop_wins(given, expected):
    assert entered(train_cfg=given).train_cfg == expected
