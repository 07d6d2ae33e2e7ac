"""Sizes and costs against the paper's table 8 and the ResNets' known ones, at 224x224."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from vt.analysis.benchmark import neck_inputs
from vt.analysis.complexity import count_complexity
from vt.analysis.paper import DETECTRON2_CLASSES, SEGMENTATION, compare_classifiers, count_config, load_tables
from vt.engine.launch import build_model

CONFIGS = Path(__file__).parents[2] / 'configs'


def complexity(name):
    init_default_scope('mmpretrain')
    model = MODELS.build(Config.fromfile(CONFIGS / f'{name}_8xb32-90e_in1k.py').model)
    return count_complexity(model, torch.randn(1, 3, 224, 224), mode='tensor')


# GFLOPs at most; million parameters at least and at most. VT-R34's parameters: table 2. FLOPs of VT-R50 and R101: 1 %
# over table 8.
@pytest.mark.parametrize(
    ('depth', 'flops', 'fewest', 'most'),
    [(18, 1.569, 0, 11.7), (34, 3.236, 0, 21.8), (50, 3.446, 16, 21.4), (101, 7.200, 35, 41.5)],
)
def test_vt_resnets_stay_within_the_papers_budget(depth, flops, fewest, most):
    cost = complexity(f'vt_resnet/vt-resnet{depth}')
    assert cost.flops / 1e9 <= flops
    assert fewest <= cost.parameters / 1e6 <= most


@pytest.mark.parametrize(('depth', 'flops', 'parameters'), [
    (18, 1.814, 11.69), (34, 3.664, 21.80), (50, 4.089, 25.56), (101, 7.802, 44.55),
])  # fmt: skip
def test_resnets_cost_what_the_paper_says(depth, flops, parameters):
    cost = complexity(f'baselines/resnet{depth}')
    assert cost.flops / 1e9 == pytest.approx(flops, abs=1e-3)
    assert cost.parameters / 1e6 == pytest.approx(parameters, abs=5e-3)


@pytest.mark.parametrize(('depth', 'flops', 'parameters'), [(50, 3.564, 25.31), (101, 7.276, 44.31)])
def test_ungrouped_twins(depth, flops, parameters):
    cost = complexity(f'vt_resnet/vt-resnet{depth}-ungrouped')
    assert cost.flops / 1e9 == pytest.approx(flops, abs=1e-3)
    assert cost.parameters / 1e6 == pytest.approx(parameters, abs=5e-3)


# Depth, recipe and GFLOPs of the whole with FPN; 54 classes, ResNet of style caffe.
@pytest.mark.parametrize(
    ('depth', 'table', 'whole'), [(50, 9, 159.1), (101, 9, 231.1), (50, 10, 37.4), (101, 10, 54.4)]
)
def test_fpn_costs_what_the_paper_says_and_vt_fpn_no_more_than_the_papers(depth, table, whole):
    _, size, recipe = SEGMENTATION[table]
    fpn, neck = count_config(CONFIGS / f'baselines/fpn_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
    vt_fpn, vt_neck = count_config(CONFIGS / f'vt_fpn/vt-fpn_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
    assert fpn.flops / 1e9 == pytest.approx(whole, abs=0.05)
    assert neck.flops / 1e9 == pytest.approx({9: 55.10, 10: 12.89}[table], abs=0.005)
    assert vt_neck.flops / 1e9 <= {9: 8.3, 10: 1.95}[table]
    assert fpn.flops - vt_fpn.flops == neck.flops - vt_neck.flops


class Attention(nn.Module):
    def forward(self, q, k, v):
        return scaled_dot_product_attention(q, k, v)


def test_fused_attention_is_counted_as_multiply_adds():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    assert count_complexity(Attention(), q, k, v).flops == 2 * 3 * (5 * 7 * 8 + 5 * 7 * 8)


def test_pytorchs_own_attention_layer_is_counted_whole():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 5, 8)
    assert count_complexity(layer, x, x, x).flops == 4 * 5 * 8 * 8 + 2 * 5 * 5 * 8


def test_counting_leaves_the_model_in_its_mode():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout()).train()
    cost = count_complexity(model, torch.randn(2, 3))
    assert (cost.flops, cost.parameters) == (24, 16)
    assert model.training
    assert model[1].training


def test_counting_without_computing_agrees_with_a_real_forward_pass():
    path = CONFIGS / 'vt_fpn/vt-fpn_r18_digit-scenes.py'
    model = build_model(Config.fromfile(path))
    image = torch.randn(1, 3, 96, 64)
    whole, neck = count_config(path, (96, 64))
    assert whole == count_complexity(model, image, mode='tensor')
    assert neck == count_complexity(model.neck, neck_inputs(model, image))


def test_our_classifiers_beside_the_papers():
    rows = compare_classifiers(CONFIGS)
    assert [row['model'] for row in rows] == [
        row['model'].split()[0] for row in load_tables()['table8_advanced_recipe']
    ]
    differences = {row['model']: float(row['GFLOPs, difference'].rstrip(' %')) for row in rows}
    assert all(abs(difference) <= 2.5 for difference in differences.values())
