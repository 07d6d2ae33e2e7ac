"""What a run gets is found by class, however a config names it."""

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, LoggerHook
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop

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


@pytest.mark.parametrize(
    'settings',
    [
        dict(
            default_hooks=dict(
                checkpoint=dict(type='CheckpointHook'), early=dict(type='EarlyStoppingHook', monitor='a')
            )
        ),
        dict(custom_hooks=[dict(type='EarlyStoppingHook', monitor=name) for name in 'ab'] + [LoggerHook()]),
        dict(default_hooks=dict(timer=None, visualization=None, num_classes=None), custom_hooks=None),
    ],
)
def test_hooks_that_a_run_may_have(settings):
    enter_defaults(cfg := Config(settings))
    assert [name for name, hook in cfg.default_hooks.items() if hook is None] in ([], ['timer'])


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
        (dict(by_epoch=False, max_iters=1), dict(type='IterBasedTrainLoop', max_iters=1)),
        (dict(by_epoch=True, type='IterBasedTrainLoop', max_iters=1), dict(type='IterBasedTrainLoop', max_iters=1)),
        (dict(by_epoch=True, type=IterBasedTrainLoop, max_iters=1), dict(type=IterBasedTrainLoop, max_iters=1)),
        (None, None),
    ],
)
def test_a_type_of_loop_wins(given, expected):
    assert entered(train_cfg=given).train_cfg == expected
