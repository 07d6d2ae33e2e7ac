"""What a run gets is found by class, however a config names it, and compares and counts as its scores and loop ask."""

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, LoggerHook
from mmengine.runner import EpochBasedTrainLoop

from vt.engine.config.default_hooks import apply_defaults
from vt.engine.score_rules import rule_of
from vt.errors import UserError


def entered(**settings):
    cfg = Config(settings)
    apply_defaults(cfg)
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
        default_hooks=dict(early=dict(type='EarlyStoppingHook', monitor='acc'), timer=None, visualization=None),
        custom_hooks=[*(dict(type='EarlyStoppingHook', monitor=name) for name in ('loss', 'acc')), LoggerHook()],
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


EPOCHS, ITERATIONS = dict(by_epoch=True, max_epochs=3), dict(type='IterBasedTrainLoop', max_iters=8)
OURS = dict(type='vt.EpochBasedTrainLoop', max_epochs=3)


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        (EPOCHS, OURS),
        (EPOCHS | ITERATIONS, ITERATIONS),  # as a config that inherits: the last one counts
        (ITERATIONS | dict(val_interval=8) | EPOCHS, OURS | dict(val_interval=1)),
        (ITERATIONS | dict(by_epoch=False), ITERATIONS),
        (EPOCHS | dict(by_epoch=False, max_iters=8), ITERATIONS),
        (None, None),
        (EPOCHS | dict(max_iters=8), 'train_cfg.max_iters=8 has no effect in EpochBasedTrainLoop'),
        (dict(by_epoch=True, max_iters=8), 'train_cfg.max_iters=8 has no effect in EpochBasedTrainLoop'),
        (ITERATIONS | dict(max_epochs=3), 'train_cfg.max_epochs=3 has no effect in IterBasedTrainLoop'),
        (EPOCHS | dict(val_begin=4), 'train_cfg.val_begin=4, but the run has max_epochs=3'),
    ],
)
def test_a_loop_has_the_type_and_the_length_that_are_set_last(given, expected):
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            entered(train_cfg=given)
    else:
        assert entered(train_cfg=given).train_cfg == expected


@pytest.mark.parametrize(
    ('checkpoint', 'expected'),
    [
        (dict(interval=1), dict(by_epoch=False, interval=4)),
        (dict(), dict(by_epoch=False, interval=-1)),
        (dict(by_epoch=False, interval=2), dict(by_epoch=False, interval=2)),
        (dict(interval=5), r'default_hooks\.checkpoint counts epochs \(interval=5\), but the run counts iterations'),
        (dict(by_epoch=True, interval=1), 'counts epochs'),
        (dict(interval=1, save_begin=2), 'counts epochs'),
    ],
)
def test_a_run_by_iterations_counts_them(checkpoint, expected):
    hooks = dict(checkpoint=dict(type='CheckpointHook') | checkpoint, logger=dict(type='LoggerHook'))
    loop, log = ITERATIONS | dict(val_interval=4), dict(window_size=5)
    loader = dict(sampler=dict(type='DefaultSampler', shuffle=True, round_up=False))
    options = dict(default_hooks=hooks, train_cfg=loop, train_dataloader=loader, log_processor=log)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            entered(**options)
        return
    cfg = entered(**options)
    assert cfg.default_hooks.checkpoint == dict(type='vt.CheckpointHook') | expected
    assert cfg.default_hooks.logger.log_metric_by_epoch is False
    assert cfg.log_processor == dict(window_size=5, by_epoch=False)
    assert cfg.train_dataloader.sampler == dict(type='InfiniteSampler', shuffle=True)
    assert entered(**cfg.to_dict()).to_dict() == cfg.to_dict()
    back = entered(train_cfg=EPOCHS, train_dataloader=cfg.train_dataloader)
    assert back.train_dataloader.sampler == dict(type='DefaultSampler', shuffle=True)


@pytest.mark.parametrize(
    ('rule', 'scores'),
    [
        ('greater', 'accuracy/top1 single-label/recall single-label/f1-score multi-label/mAP coco/bbox_mAP_50 AR@100'),
        ('greater', 'mIoU aAcc mFscore d1 classes/top-1 classes/F1/error classes/IoU/loss classes/mean_boundary_IoU'),
        ('less', 'loss val/loss val/decode.loss_ce top1_error error_rate perplexity EPE abs_rel rmse_log mAE'),
        ('less', 'classes/ECE classes/wrong_at_boundaries'),
        (None, 'single-label/support quality a desktop'),
    ],
)
def test_whether_more_is_better_is_known_by_the_words_of_a_name(rule, scores):
    assert {score: rule_of(score) for score in scores.split()} == dict.fromkeys(scores.split(), rule)


COMPARING = [
    ('default_hooks', lambda score, **rule: dict(checkpoint=dict(type='CheckpointHook', save_best=score, **rule))),
    ('custom_hooks', lambda score, **rule: [dict(type='EarlyStoppingHook', monitor=score, **rule)]),
    ('param_scheduler', lambda score, **rule: dict(type='ReduceOnPlateauLR', monitor=score, **rule)),
    ('param_scheduler', lambda score, **rule: dict(one=[dict(type='ReduceOnPlateauMomentum', monitor=score, **rule)])),
]


@pytest.mark.parametrize(('section', 'made'), COMPARING)
@pytest.mark.parametrize(('score', 'rule'), [('top1_error', 'less'), ('single-label/recall', 'greater')])
def test_what_compares_scores_gets_their_rule_or_is_refused(section, made, score, rule):
    """A rule that is set is kept, one that nobody knows is asked for; of several scores each has its own."""
    for given in ({}, dict(rule='less')):
        found = entered(**{section: made(score, **given)})[section]
        expected = entered(**{section: made(score, **dict(rule=rule) | given)})[section]
        assert found == expected
        assert f"'rule': '{(dict(rule=rule) | given)['rule']}'" in str(found)
    with pytest.raises(UserError, match=r"=quality: the name does not say .*: set rule='greater' or 'less'"):
        entered(**{section: made('quality')})
    assert entered(**{section: made('quality', rule='less')})
    hook = dict(type='CheckpointHook', save_best=['accuracy/top1', 'val/loss'])
    assert entered(default_hooks=dict(checkpoint=hook)).default_hooks.checkpoint.rule == ['greater', 'less']
