"""Rules of paramwise_cfg: rates by layers, keys that match nothing; statistics of layers that are not trained."""

import pytest
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmpretrain.models import build_backbone
from mmpretrain.registry import MODELS
from torch import nn

from vt.engine.config import parameter_rules
from vt.engine.config.parameter_rules import check_parameter_rules, find_moving_statistics, match_parameters
from vt.engine.run.runner import VTRunner
from vt.errors import UserError

BY_LAYERS = dict(constructor='LearningRateDecayOptimWrapperConstructor')
DEIT = {'.cls_token': dict(decay_mult=0.0), '.pos_embed': dict(decay_mult=0.0)}


@pytest.fixture(scope='module')
def model():
    arch = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32)
    backbone = build_backbone(dict(type='mmpretrain.VisionTransformer', arch=arch, img_size=32, patch_size=16))
    return nn.ModuleDict(dict(backbone=backbone, head=nn.Linear(16, 3)))


def wrapper(custom_keys, **options):
    optimizer = dict(type='AdamW', lr=1.0, weight_decay=1.0)
    return dict(type='OptimWrapper', optimizer=optimizer, paramwise_cfg=dict(custom_keys=custom_keys, **options))


@pytest.mark.parametrize(
    'custom_keys',
    [
        DEIT,
        DEIT | dict(backbone=dict(lr_mult=0.1), head=dict(lr_mult=3.0, decay_mult=0.5)),
        {'backbone.layers': dict(lr_mult=0.1), 'backbone.layers.1': dict(lr_mult=0.5), 'ln': dict(decay_mult=0)},
    ],
)
def test_parameters_are_matched_as_mmengine_matches_them(model, custom_keys):
    built = build_optim_wrapper(model, wrapper(custom_keys))
    groups = {id(group['params'][0]): group for group in built.optimizer.param_groups}
    ruled = {name: custom_keys[key] for key, names in match_parameters(model, custom_keys).items() for name in names}
    for name, parameter in model.named_parameters():
        options = ruled.get(name, {})
        group = groups[id(parameter)]
        assert (group['lr'], group['weight_decay']) == (options.get('lr_mult', 1), options.get('decay_mult', 1)), name


@pytest.mark.parametrize(
    ('key', 'words'),
    [
        ('backbnoe', 'backbnoe matches no parameter of the model: did you mean backbone'),
        ('decoder', 'decoder matches no parameter of the model: correct or remove it'),
        ('.pos_embd', r'did you mean pos_embed\?'),
    ],
)
def test_a_key_that_matches_nothing_is_refused(model, key, words):
    with pytest.raises(UserError, match=words):
        check_parameter_rules(model, wrapper({key: dict(lr_mult=0.1)}))


def test_a_recipe_may_name_what_other_models_have(model):
    keys = DEIT | {'.relative_position_bias_table': dict(decay_mult=0), 'backbone': dict(lr_mult=0.1)}
    number = sum(name.startswith('backbone') for name, _ in model.named_parameters())
    assert check_parameter_rules(model, wrapper(keys, norm_decay_mult=0.0)) == [
        'paramwise_cfg: .cls_token applies to 1 parameters, lr_mult 1, decay_mult 0',
        'paramwise_cfg: .pos_embed applies to 1 parameters, lr_mult 1, decay_mult 0',
        'paramwise_cfg: .relative_position_bias_table applies to 0 parameters, lr_mult 1, decay_mult 0',
        f'paramwise_cfg: backbone applies to {number - 2} parameters, lr_mult 0.1, decay_mult 1',
    ]


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (wrapper({}, norm_decay_mul=0.0), 'norm_decay_mul has no effect'),
        (wrapper(dict(head=dict(lr_mult=2.0))) | BY_LAYERS, 'lr_mult has no effect'),
        (wrapper({}) | dict(constructor='LayerDecayOptimizerConstructor'), 'custom_keys has no effect'),
    ],
)
def test_settings_that_a_constructor_does_not_read(model, options, words):
    with pytest.raises(UserError, match=words):
        check_parameter_rules(model, options)


RESNET = dict(type='mmpretrain.ResNet', depth=18, base_channels=8, stem_channels=8)


def moving(part, freeze=None, warms_up=False, **custom_keys):
    """The warning about a backbone below a head, with rates by keys."""
    model = nn.ModuleDict(dict(backbone=build_backbone(part), head=nn.Linear(64, 3)))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and not (freeze and name.startswith(freeze)))
    groups = build_optim_wrapper(model, wrapper(custom_keys)).optimizer.param_groups
    for group in groups if warms_up else ():
        group.update(initial_lr=group['lr'], lr=0.0)
    return ' '.join(find_moving_statistics(model.train(), groups))


STILL = dict(lr_mult=0.0)
ALL = 'running statistics of 20 normalisations, such as backbone.bn1, change in training'
ADVICE = 'set frozen_stages of the backbone, or wrap it in vt.FrozenBackbone'


@pytest.mark.parametrize(
    ('part', 'options', 'words'),
    [
        (RESNET, dict(backbone=STILL), [ALL, ADVICE]),
        (RESNET, dict(freeze='backbone'), [ALL, ADVICE]),
        (RESNET, {'backbone.conv1': STILL, 'backbone.bn1': STILL}, ['running statistics of 1 ']),
        (RESNET, {'backbone.layer1': STILL}, ['backbone.layer1.0.bn1']),
        (RESNET, {}, None),
        (RESNET, dict(warms_up=True), None),
        (RESNET | dict(norm_cfg=dict(type='BN', requires_grad=False)), {}, None),
        (RESNET | dict(norm_cfg=dict(type='GN', num_groups=2)), dict(backbone=STILL), None),
        (RESNET | dict(frozen_stages=4), {}, None),
        (RESNET | dict(norm_eval=True), dict(backbone=STILL), None),
        (dict(type='vt.FrozenBackbone', backbone=RESNET), {}, None),
    ],
)
def test_statistics_of_layers_that_are_not_trained_are_named(part, options, words):
    found = moving(part, **options)
    assert bool(found) == bool(words)
    assert all(each in found for each in words or [])


OF_TNT = {'patch_pos': 0, 'pixel_embed': 0, 'norm2_proj': 0, 'layers.0.': 1, 'layers.2.': 3, 'norm.': 4}
TNT = dict(embed_dims_outer=24, embed_dims_inner=8, num_layers=3, num_heads_inner=2, num_heads_outer=2)


@pytest.mark.parametrize(
    ('part', 'channels', 'depths', 'number'),
    [
        (dict(type='TNT', arch=TNT, img_size=32), 24, OF_TNT, 5),
        (dict(type='ResNet', depth=18), 512, {'conv1': 0, 'bn1': 0, 'layer1.0.': 1, 'layer4.1.': 8}, 10),
        (dict(type='MobileNetV2'), 1280, {'conv1': 0, 'layer1.0.': 1, 'layer7.0.': 17, 'conv2': 18}, 19),
    ],
)
def test_rates_decay_by_layers_of_any_backbone(part, channels, depths, number, tmp_path):
    head = dict(type='LinearClsHead', in_channels=channels, num_classes=3)
    model = MODELS.build(dict(type='ImageClassifier', backbone=part, head=head))
    options = dict(default_scope='mmpretrain', cfg=Config(dict()), experiment_name='groups')
    rules = BY_LAYERS | dict(paramwise_cfg=dict(layer_decay_rate=0.5, norm_decay_mult=0.0))
    runner = VTRunner(model, work_dir=str(tmp_path), **options)
    found = runner.build_optim_wrapper(wrapper({}) | rules).optimizer.param_groups
    rates = {group['param_name']: group['lr'] for group in found}
    assert len(rates) == len([*model.parameters()])
    for name, depth in depths.items():
        own = {rate for parameter, rate in rates.items() if parameter.startswith(f'backbone.{name}')}
        assert own == {0.5 ** (number - 1 - depth)}, name
    assert rates['head.fc.weight'] == 1


@pytest.mark.parametrize('rules', [dict(flat_decay_mult=0.0), dict(custom_keys=DEIT)])
def test_a_factor_needs_a_weight_decay_in_the_config(rules):
    """mmengine's constructor would leave the optimizer's own default for all parameters, without a word."""
    with pytest.raises(UserError, match='decay_mult has no weight_decay to multiply: set'):
        parameter_rules.require_multiplied(dict(optimizer=dict(type='AdamW', lr=1.0), paramwise_cfg=rules))
