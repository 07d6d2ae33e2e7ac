"""Rules of paramwise_cfg that match nothing, and statistics of layers that are not trained."""

import pytest
from mmengine.optim import build_optim_wrapper
from mmpretrain.models import build_backbone
from torch import nn

from vt.engine.checks.parameter_rules import (
    check_parameter_rules,
    find_moving_statistics,
    match_parameters,
    require_multiplied,
)
from vt.errors import UserError

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
    ('custom_keys', 'words'),
    [
        (
            dict(backbnoe=dict(lr_mult=0.1)),
            'backbnoe matches no parameter of the model: did you mean backbone',
        ),
        (
            dict(decoder=dict(lr_mult=0.1)),
            'decoder matches no parameter of the model: correct or remove it',
        ),
        ({'.pos_embd': dict(decay_mult=0.0)}, 'did you mean pos_embed?'),
    ],
)
def test_a_key_that_matches_nothing_is_refused(model, custom_keys, words):
    with pytest.raises(UserError, match=words):
        check_parameter_rules(model, wrapper(custom_keys))


def test_a_recipe_may_name_what_other_models_have(model):
    keys = DEIT | {'.relative_position_bias_table': dict(decay_mult=0), 'backbone': dict(lr_mult=0.1)}
    number = sum(name.startswith('backbone') for name, _ in model.named_parameters())
    assert check_parameter_rules(model, wrapper(keys, norm_decay_mult=0.0)) == [
        'paramwise_cfg: .cls_token applies to 1 parameters, lr_mult 1, decay_mult 0',
        'paramwise_cfg: .pos_embed applies to 1 parameters, lr_mult 1, decay_mult 0',
        'paramwise_cfg: .relative_position_bias_table applies to 0 parameters, lr_mult 1, decay_mult 0',
        f'paramwise_cfg: backbone applies to {number - 2} parameters, lr_mult 0.1, decay_mult 1',
    ]


def test_settings_that_a_constructor_does_not_read(model):
    with pytest.raises(UserError, match='norm_decay_mul has no effect'):
        check_parameter_rules(model, wrapper({}, norm_decay_mul=0.0))
    decayed = wrapper(dict(head=dict(lr_mult=2.0))) | dict(constructor='LearningRateDecayOptimWrapperConstructor')
    with pytest.raises(UserError, match='lr_mult has no effect'):
        check_parameter_rules(model, decayed)
    layers = wrapper({}) | dict(constructor='LayerDecayOptimizerConstructor')
    with pytest.raises(UserError, match='custom_keys has no effect'):
        check_parameter_rules(model, layers)


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


def test_statistics_of_layers_that_are_not_trained_are_named():
    still = dict(lr_mult=0.0)
    found = moving(RESNET, backbone=still)
    assert found.startswith('running statistics of 20 normalisations, such as backbone.bn1, change in training')
    assert 'set frozen_stages of the backbone, or wrap it in vt.FrozenBackbone' in found
    assert moving(RESNET, freeze='backbone') == found
    assert moving(RESNET, **{'backbone.conv1': still, 'backbone.bn1': still}).startswith('running statistics of 1 ')
    assert 'backbone.layer1.0.bn1' in moving(RESNET, **{'backbone.layer1': still})


def test_statistics_of_trained_and_of_frozen_layers_are_not_named():
    still = dict(lr_mult=0.0)
    assert moving(RESNET) == moving(RESNET, warms_up=True) == ''
    assert moving(RESNET | dict(norm_cfg=dict(type='BN', requires_grad=False))) == ''
    assert moving(RESNET | dict(norm_cfg=dict(type='GN', num_groups=2)), backbone=still) == ''
    assert moving(RESNET | dict(frozen_stages=4)) == ''
    assert moving(RESNET | dict(norm_eval=True), backbone=still) == ''
    assert moving(dict(type='vt.FrozenBackbone', backbone=RESNET)) == ''


@pytest.mark.parametrize('rules', [dict(flat_decay_mult=0.0), dict(custom_keys=DEIT)])
def test_a_factor_needs_a_weight_decay_in_the_config(rules):
    """mmengine's constructor would leave the optimizer's own default for all parameters, without a word."""
    with pytest.raises(UserError, match='decay_mult has no weight_decay to multiply: set'):
        require_multiplied(dict(optimizer=dict(type='AdamW', lr=1.0), paramwise_cfg=rules))
    require_multiplied(dict(optimizer=dict(type='AdamW', weight_decay=0.1), paramwise_cfg=dict(norm_decay_mult=0.0)))
