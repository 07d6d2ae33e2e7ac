"""Rates that decay by layers, for any backbone."""

import pytest
from mmengine.config import Config
from mmpretrain.registry import MODELS

from vt.engine.runner import VTRunner

CONSTRUCTOR = 'LearningRateDecayOptimWrapperConstructor'
TNT = dict(embed_dims_outer=24, embed_dims_inner=8, num_layers=3, num_heads_inner=2, num_heads_outer=2)
CASES = dict(
    tnt=(
        dict(type='TNT', arch=TNT, img_size=32),
        24,
        {'patch_pos': 0, 'pixel_embed': 0, 'norm2_proj': 0, 'layers.0.': 1, 'layers.2.': 3, 'norm.': 4},
        5,
    ),
    resnet=(
        dict(type='ResNet', depth=18),
        512,
        {'conv1': 0, 'bn1': 0, 'layer1.0.': 1, 'layer1.1.': 2, 'layer4.1.': 8},
        10,
    ),
    mobilenet=(dict(type='MobileNetV2'), 1280, {'conv1': 0, 'layer1.0.': 1, 'layer7.0.': 17, 'conv2': 18}, 19),
)


@pytest.fixture
def groups(tmp_path):
    def build(model, optimizer, **options):
        runner = VTRunner(
            model, work_dir=str(tmp_path), experiment_name='groups', default_scope='mmpretrain', cfg=Config(dict())
        )
        cfg = dict(type='OptimWrapper', optimizer=optimizer, constructor=CONSTRUCTOR, paramwise_cfg=options)
        return runner.build_optim_wrapper(cfg).optimizer.param_groups

    return build


@pytest.mark.parametrize('case', CASES)
def test_rates_decay_by_layers_of_any_backbone(case, groups):
    backbone, channels, expected, number = CASES[case]
    head = dict(type='LinearClsHead', in_channels=channels, num_classes=3)
    model = MODELS.build(dict(type='ImageClassifier', backbone=backbone, head=head))
    found = groups(model, dict(type='SGD', lr=1.0, weight_decay=0.0), layer_decay_rate=0.5, norm_decay_mult=0.0)
    rates = {group['param_name']: group['lr'] for group in found}
    assert len(rates) == len([*model.parameters()])
    assert {group['weight_decay'] for group in found} == {0}
    for part, depth in expected.items():
        own = {rate for name, rate in rates.items() if name.startswith(f'backbone.{part}')}
        assert own == {0.5 ** (number - 1 - depth)}, part
    assert rates['head.fc.weight'] == 1
