"""The walk over a config accepts what runs, and names what does not by its path."""

from pathlib import Path

import mmpretrain
import mmseg
import pytest
from mmengine import registry as root
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, LoggerHook
from mmengine.registry import Registry
from tool_runner import ROOT

from vt._libraries import import_library
from vt.engine.checks.config import check_config, check_part
from vt.engine.prepare import read_config
from vt.errors import UserError

DIGITS = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
SCENES = str(ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py')
# Settings that run; a walk that refuses one would be in the way.
FINE = [
    {'activation_checkpointing': ['backbone.layer1']},
    {'efficient_conv_bn_eval': ['backbone']},
    {'param_scheduler.0.convert_to_iter_based': True},
    {'find_unused_parameters': True},
    {'default_hooks.checkpoint.type': CheckpointHook},
    {'default_hooks.checkpoint.type': 'mmengine.CheckpointHook'},
    {'default_hooks.timer': None},
    {'custom_hooks': [dict(type='EMAHook', momentum=1e-3, priority='ABOVE_NORMAL')]},
    {'optim_wrapper': None, 'train_cfg': None, 'train_dataloader': None},
    {'model.backbone.norm_cfg': dict(type='SyncBN', requires_grad=True)},
    {'model.init_cfg': [dict(type='Pretrained', checkpoint='a.pth'), dict(type='Normal', layer='Linear', std=0.1)]},
    {'train_cfg': dict(type='IterBasedTrainLoop', by_epoch=False, max_iters=5)},
    {'optim_wrapper.paramwise_cfg': dict(custom_keys={'backbone': dict(lr_mult=0.1)})},
    {'optim_wrapper.clip_grad': dict(type='value', clip_value=1.0)},
    {'optim_wrapper.type': 'AmpOptimWrapper', 'optim_wrapper.loss_scale': 512.0},
]


def shipped(package, number):
    """Some of the configs that a library ships."""
    folder = Path(package.__file__).parent / '.mim/configs'
    paths = sorted(path for path in folder.rglob('*.py') if '_base_' not in str(path))
    return [str(path) for path in paths[:: len(paths) // number]]


@pytest.mark.parametrize('changes', FINE, ids=lambda changes: ' '.join(changes))
def test_settings_that_run_are_accepted(changes):
    check_config(read_config(DIGITS, changes), changes)


@pytest.mark.parametrize(
    ('package', 'scope'), [(mmpretrain, 'mmpretrain'), (mmseg, 'mmseg')], ids=['mmpretrain', 'mmseg']
)
def test_configs_of_the_libraries_are_accepted(package, scope):
    """But for those whose packages are not installed."""
    import_library(scope)
    refused = {}
    for path in shipped(package, 15):
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


@pytest.mark.parametrize(
    ('config', 'changes', 'message'),
    [
        (DIGITS, {'model.backbone.stem_chanels': 8}, 'did you mean stem_channels'),  # an argument of its base
        (DIGITS, {'model.backbone.relation.num_head': 2}, "model.backbone.relation: .* has no argument 'num_head'"),
        (
            DIGITS,
            {'model.backbone.relation': dict(type='vt.TokenTransfomer')},
            r"type 'vt.TokenTransfomer'; did you mean vt.",
        ),
        (DIGITS, {'model.backbone.num_tokens': 'many'}, r"model.backbone.num_tokens='many' must be of type int"),
        (DIGITS, {'model.backbone.frozen_stages': True}, 'model.backbone.frozen_stages=True must be of type int'),
        (DIGITS, {'train_dataloader.dataset.splt': 'a'}, "train_dataloader.dataset: Digits has no argument 'splt'"),
        (DIGITS, {'train_dataloader.dataset.pipeline.1.prop': 1}, r"pipeline.1: Rotate has no argument 'prop'"),
        (
            DIGITS,
            {'train_dataloader.batchsize': 1},
            r"train_dataloader: it has no argument 'batchsize'; did you mean batch_s",
        ),
        (DIGITS, {'train_dataloader.dataset.type': 3}, 'train_dataloader.dataset.type=3 must be the name of a type'),
        (DIGITS, {'default_hooks.sampler_seed.type': None}, 'default_hooks.sampler_seed.type=None must be the name of'),
        (DIGITS, {'model.backbone.relation': dict(type=None)}, 'relation.type=None must be the name of a type'),
        (DIGITS, {'val_evaluator.topk_': 3}, "val_evaluator: Accuracy has no argument 'topk_'"),
        (
            DIGITS,
            {'default_hooks.logger.type': 'LogerHook'},
            "default_hooks.logger: there is no type 'LogerHook'; did you",
        ),
        (DIGITS, {'param_scheduler.0.T_maxx': 3}, 'param_scheduler.0: .* has no argument .T_maxx.'),
        (DIGITS, {'randomness.sed': 3}, "randomness: it has no argument 'sed'; did you mean seed"),
        (
            DIGITS,
            {'env_cfg.cudnn_benchmrk': True},
            "env_cfg: it has no argument 'cudnn_benchmrk'; did you mean cudnn_ben",
        ),
        (
            DIGITS,
            {'auto_scale_lr.base_batchsize': 64},
            "auto_scale_lr: it has no argument 'base_batchsize'; did you mean",
        ),
        (DIGITS, {'optim_wrapper.clip_grad': 1.0}, 'optim_wrapper.clip_grad=1.0 must be a dict of settings, or None'),
        (DIGITS, {'optim_wrapper.clip_gradd': None}, "optim_wrapper: .* no .* 'clip_gradd'; did you mean clip_grad"),
        (
            DIGITS,
            {'optim_wrapper.optimizer.lrr': 1},
            "optim_wrapper.optimizer: AdamW has no argument 'lrr'; did you mean lr",
        ),
        (DIGITS, {'model.head.los': None}, "model.head: LinearClsHead has no argument 'los'; did you mean loss"),
        (SCENES, {'model.neck.num_token': 3}, "model.neck: VTFPN has no argument 'num_token'; did you mean num_tokens"),
        (SCENES, {'model.decode_head.loss_decode.0.use_sigmoidd': 1}, 'model.decode_head.loss_decode.0: '),
        (
            SCENES,
            {'model.data_preprocessor.sise': (3, 3)},
            "model.data_preprocessor: SegDataPreProcessor has no argument 'sise'",
        ),
        (DIGITS, {'default_scope': 'mmcls'}, "model: default_scope='mmcls' has no package with registries; correct it"),
        (DIGITS, {'default_scope': 'os'}, "model: default_scope='os' has no package with registries; correct it"),
        (
            DIGITS,
            {'val_dataloader': dict(_delete_=True, batch_size=4)},
            'val_dataloader has no dataset: set val_dataloader.dataset=',
        ),
        (DIGITS, {'randomness.self': 3}, "randomness: it has no argument 'self'"),
        (DIGITS, {'optim_wrapper.clip_grad': dict(clip_value=1.0)}, "clip_grad: .* has no argument 'clip_value'"),
        (DIGITS, {'optim_wrapper.clip_grad': dict(type='value', max_norm=1)}, "clip_grad: .* no argument 'max_norm'"),
        (DIGITS, {'data_root': 'a'}, "no setting 'data_root'; did you mean train_dataloader.dataset.data_root?"),
        (SCENES, {'data_preprocessor.mean': 3}, "setting 'data_preprocessor'; did you mean model.data_preprocessor?"),
        (DIGITS, {'default_scope': True}, 'default_scope=True must be of type str'),
        (DIGITS, {'speed.chanels_last': True}, "speed: it has no argument 'chanels_last'; did you mean channels_last"),
        (DIGITS, {'speed.channels_last': 'no'}, "speed.channels_last='no' must be of type bool"),
        (DIGITS, {'lod_from': 'a.pth'}, "there is no setting 'lod_from'; did you mean load_from"),
        (DIGITS, {'lr': 0.1}, "there is no setting 'lr'; did you mean optim_wrapper.optimizer.lr"),
        (DIGITS, {'epochs': 3}, "there is no setting 'epochs'; did you mean train_cfg.max_epochs"),
        (DIGITS, {'batch_size': 3}, "there is no setting 'batch_size'; did you mean train_dataloader.batch_size"),
        (
            DIGITS,
            {'default_hooks.chekpoint': dict(type='CheckpointHook')},
            'chekpoint would add a hook beside .*checkpoint',
        ),
        (DIGITS, {'default_hooks.visualisation': None}, 'add a hook beside default_hooks.visualization: rename it'),
        (DIGITS, {'my_own': 3}, "there is no setting 'my_own'"),
    ],
)
def test_a_mistake_is_named_by_its_path(config, changes, message):
    cfg = read_config(config, changes)
    with pytest.raises(UserError, match=message):
        check_config(cfg, changes)


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


def test_the_root_is_an_option_where_a_data_set_has_it(tmp_path):
    own = "train_dataloader = dict(dataset=dict(_delete_=True, type='CustomDataset', data_root='own'))\n"
    (tmp_path / 'c.py').write_text(f'_base_ = {DIGITS!r}\n{own}')
    options = {'train_dataloader.dataset.data_root': 'b'}
    check_config(read_config(str(tmp_path / 'c.py'), options), options)
    with pytest.raises(UserError, match="cfg-options: there is no setting 'data_root'"):
        check_config(read_config(str(tmp_path / 'c.py'), options | {'data_root': 'a'}), options | {'data_root': 'a'})
    (tmp_path / 'c.py').write_text(f"_base_ = {DIGITS!r}\ndata_root = 'own'\n{own}")
    check_config(read_config(str(tmp_path / 'c.py'), {'data_root': 'a'}), {'data_root': 'a'})


def test_parts_inherit_the_scope_of_the_part_that_they_are_in():
    head = dict(type='FCNHead', in_channels=4, channels=4, num_classes=2, loss_decode=dict(type='DiceLoss'))
    check_part(head | dict(_scope_='mmseg'), 'head', 'mmpretrain')
    with pytest.raises(UserError, match=r"^head.loss_decode: there is no type 'DiceLoss'"):
        check_part(head | dict(type='mmseg.FCNHead'), 'head', 'mmpretrain')


def test_a_class_stands_for_its_name():
    cfg = read_config(DIGITS)
    cfg.default_hooks.checkpoint = dict(type=LoggerHook, intervall=2)
    with pytest.raises(UserError, match=r"default_hooks.checkpoint: LoggerHook has no argument 'intervall'"):
        check_config(cfg)


def test_a_preprocessor_beside_the_models_own(tmp_path):
    """MMSegmentation's bases give it to the model, MMPretrain's leave it to the runner."""
    own = 'data_preprocessor = dict(mean=[52.6, 52.6, 52.6])\n'
    for base, text, message in (
        ('base.py', own, 'setting data_preprocessor has no effect, because model of a base'),
        (SCENES, 'model = dict(data_preprocessor=dict(mean=[52.6, 52.6, 52.6]))\n', None),
        (DIGITS, own, None),
    ):
        (tmp_path / 'base.py').write_text(
            'data_preprocessor = dict(type="SegDataPreProcessor", size=(64, 64))\n'
            'model = dict(type="EncoderDecoder", data_preprocessor=data_preprocessor)\ndefault_scope = "mmseg"\n'
        )
        (tmp_path / 'c.py').write_text(f'_base_ = {base!r}\n{text}')
        cfg = read_config(str(tmp_path / 'c.py'))
        if message:
            with pytest.raises(UserError, match=message):
                check_config(cfg)
            with pytest.raises(
                UserError, match='cfg-options: setting data_preprocessor has no effect, because model of'
            ):
                check_config(read_config(str(tmp_path / 'base.py')), ['data_preprocessor.mean'])
        else:
            check_config(cfg)
