"""The walk over a config accepts what runs, and names what does not by its path."""

from pathlib import Path

import mmpretrain
import mmseg
import pytest
import torch
from mmengine import registry as root
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, LoggerHook
from mmengine.registry import Registry
from tool_runner import ROOT

from vt._libraries import import_library
from vt.engine.config.check_settings import check_config, check_part
from vt.engine.config.steps import read_config
from vt.errors import UserError

DIGITS = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
SCENES = str(ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py')
# Settings that run; a walk that refuses one would be in the way.
FINE = [
    {'activation_checkpointing': ['backbone.layer1']},
    {'efficient_conv_bn_eval': ['backbone']},
    {'default_hooks.checkpoint.type': CheckpointHook},
    {'default_hooks.checkpoint.type': 'mmengine.CheckpointHook'},
    {'custom_hooks': [dict(type='EMAHook', momentum=1e-3, priority='ABOVE_NORMAL')]},
    {'optim_wrapper': None, 'train_cfg': None, 'train_dataloader': None},
    {'model.backbone.norm_cfg': dict(type='SyncBN', requires_grad=True)},
    {'model.init_cfg': [dict(type='Pretrained', checkpoint='a.pth'), dict(type='Normal', layer='Linear', std=0.1)]},
    {'train_cfg': dict(type='IterBasedTrainLoop', by_epoch=False, max_iters=5)},
    {'optim_wrapper.paramwise_cfg': dict(custom_keys={'backbone': dict(lr_mult=0.1)})},
    {'optim_wrapper.clip_grad': dict(type='value', clip_value=1.0)},
    {'optim_wrapper.type': 'AmpOptimWrapper', 'optim_wrapper.loss_scale': 512.0},
    {'optim_wrapper.dtype': torch.float16},
]


@pytest.mark.parametrize('changes', FINE, ids=lambda changes: ' '.join(changes))
def test_settings_that_run_are_accepted(changes):
    check_config(read_config(DIGITS, changes), changes)


@pytest.mark.parametrize('package', [mmpretrain, mmseg], ids=['mmpretrain', 'mmseg'])
def test_configs_of_the_libraries_are_accepted(package):
    """Some of them, but for those whose packages are not installed."""
    import_library(package.__name__)
    paths = sorted((Path(package.__file__).parent / '.mim/configs').rglob('*.py'))
    paths, refused = [path for path in paths if '_base_' not in str(path)], {}
    for path in paths[:: len(paths) // 15]:
        try:
            cfg = Config.fromfile(path)
        except Exception:  # mmengine can't read it either
            continue
        try:
            check_config(cfg)
        except UserError as error:
            if cfg.model.type in ('ImageClassifier', 'EncoderDecoder') and 'mmdet.' not in str(error):
                refused[path] = str(error)
    assert not refused


RELATION, LOADER, WRAPPER = 'model.backbone.relation', 'train_dataloader', 'optim_wrapper'
NO_ARGUMENT = "it has no argument '{}'; did you mean {}"
# Of a setting, what the line says.
MISTAKES = [
    ('model.backbone.stem_chanels', 8, 'did you mean stem_channels'),  # an argument of its base
    (RELATION, dict(type=None), 'relation.type=None must be the name of a type'),
    ('model.backbone.num_tokens', 'many', r"model.backbone.num_tokens='many' must be of type int"),
    ('model.backbone.frozen_stages', True, 'model.backbone.frozen_stages=True must be of type int'),
    (f'{LOADER}.dataset.pipeline.1.prop', 1, r"pipeline.1: Rotate has no argument 'prop'"),
    (f'{LOADER}.batchsize', 1, f'{LOADER}: {NO_ARGUMENT.format("batchsize", "batch_size")}'),
    (f'{LOADER}.dataset.type', 3, f'{LOADER}.dataset.type=3 must be the name of a type'),
    ('val_dataloader', dict(_delete_=True, batch_size=4), 'no dataset: set val_dataloader.dataset='),
    ('param_scheduler.0.T_maxx', 3, 'param_scheduler.0: .* has no argument .T_maxx.'),
    ('randomness.sed', 3, f'randomness: {NO_ARGUMENT.format("sed", "seed")}'),
    ('randomness.self', 3, "randomness: it has no argument 'self'"),
    ('env_cfg.cudnn_benchmrk', True, f'env_cfg: {NO_ARGUMENT.format("cudnn_benchmrk", "cudnn_benchmark")}'),
    ('auto_scale_lr.base_batchsize', 64, "auto_scale_lr: it has no argument 'base_batchsize'; did you mean"),
    (f'{WRAPPER}.clip_grad', 1.0, f'{WRAPPER}.clip_grad=1.0 must be a dict of settings, or None'),
    (f'{WRAPPER}.clip_grad', dict(clip_value=1.0), "clip_grad: .* has no argument 'clip_value'"),
    (f'{WRAPPER}.clip_grad', dict(type='value', max_norm=1), "clip_grad: .* no argument 'max_norm'"),
    (f'{WRAPPER}.clip_gradd', None, f"{WRAPPER}: .* no .* 'clip_gradd'; did you mean clip_grad"),
    (f'{WRAPPER}.optimizer.lrr', 1, f"{WRAPPER}.optimizer: AdamW has no argument 'lrr'; did you mean lr"),
    ('default_scope', 'mmcls', "model: default_scope='mmcls' is not a package with registries; correct it"),
    ('data_root', 'a', "no setting 'data_root'; did you mean train_dataloader.dataset.data_root?"),
    ('speed.channels_last', 'no', "speed.channels_last='no' must be of type bool"),
    ('lod_from', 'a.pth', "there is no setting 'lod_from'; did you mean load_from"),
    ('learning_rate', 0.1, "there is no setting 'learning_rate'; did you mean lr"),
    ('default_hooks.logger.type', 'LogerHook', "default_hooks.logger: there is no type 'LogerHook'; did you"),
    ('default_hooks.logger', dict(type=LoggerHook, intervall=2), "logger: LoggerHook has no argument 'intervall'"),
    ('default_hooks.chekpoint', dict(type='CheckpointHook'), 'chekpoint would add a hook beside .*checkpoint'),
    ('default_hooks.visualisation', None, 'add a hook beside visualization: rename it'),
]
IN_SCENES = [
    ('model.neck.num_token', 3, "model.neck: VTFPN has no argument 'num_token'; did you mean num_tokens"),
    ('data_preprocessor.mean', 3, "setting 'data_preprocessor'; did you mean model.data_preprocessor?"),
]


@pytest.mark.parametrize(
    ('config', 'key', 'value', 'message'),
    [*((DIGITS, *mistake) for mistake in MISTAKES), *((SCENES, *mistake) for mistake in IN_SCENES)],
)
def test_a_mistake_is_named_by_its_path(config, key, value, message):
    cfg = read_config(config, {key: value})
    with pytest.raises(UserError, match=message):
        check_config(cfg, {key: value})


def test_types_of_a_users_own_scope_are_found_and_names_are_no_modules(tmp_path, monkeypatch):
    hooks = Registry('hook', parent=root.HOOKS, scope='mine')
    hooks.register_module('Quiet', module=LoggerHook)
    try:
        check_config(read_config(DIGITS, {'custom_hooks': [dict(type='mine.Quiet')]}))
    finally:
        root.HOOKS.children.pop('mine')
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'Trap.py').write_text('raise AssertionError')
    with pytest.raises(UserError, match="there is no type 'Trap'"):
        check_config(read_config(DIGITS, {'custom_hooks': [dict(type='Trap')]}))


def test_parts_inherit_the_scope_of_the_part_that_they_are_in():
    head = dict(type='FCNHead', in_channels=4, channels=4, num_classes=2, loss_decode=dict(type='DiceLoss'))
    check_part(head | dict(_scope_='mmseg'), 'head', 'mmpretrain')
    with pytest.raises(UserError, match=r"^head.loss_decode: there is no type 'DiceLoss'"):
        check_part(head | dict(type='mmseg.FCNHead'), 'head', 'mmpretrain')


def test_a_preprocessor_beside_the_models_own(tmp_path):
    """MMSegmentation's bases give it to the model, MMPretrain's leave it to the runner."""
    base, child = tmp_path / 'base.py', tmp_path / 'c.py'
    base.write_text(
        'data_preprocessor = dict(type="SegDataPreProcessor", size=(64, 64))\n'
        'model = dict(type="EncoderDecoder", data_preprocessor=data_preprocessor)\ndefault_scope = "mmseg"\n'
    )
    own = 'data_preprocessor = dict(mean=[52.6, 52.6, 52.6])\n'
    for name, text in ((SCENES, f'model = dict({own.strip()})\n'), (DIGITS, own)):
        child.write_text(f'_base_ = {name!r}\n{text}')
        check_config(read_config(str(child)))
    child.write_text(f"_base_ = 'base.py'\n{own}")
    for path, options in ((child, []), (base, ['data_preprocessor.mean'])):
        with pytest.raises(UserError, match='setting data_preprocessor has no effect, because model of'):
            check_config(read_config(str(path)), options)
