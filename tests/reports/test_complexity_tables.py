"""Sizes and costs against the paper's table 8 and the ResNets' known ones, at 224x224."""

from pathlib import Path

import pytest

from docs.reports import complexity as tables
from docs.reports.complexity import count_config
from docs.reports.paper import ABLATIONS, DETECTRON2_CLASSES, SEGMENTATION, load_tables

CONFIGS = Path(__file__).parents[2] / 'configs'


def complexity(name):
    return count_config(CONFIGS / f'{name}_8xb32-90e_in1k.py')[0]


# GFLOPs at most; million parameters at least and at most. VT-R34's parameters: table 2. FLOPs of VT-R50 and R101: 1 %
# over table 8.
@pytest.mark.parametrize(
    ('depth', 'flops', 'fewest', 'most'),
    [(18, 1.569, 0, 11.7), (34, 3.236, 0, 21.8), (50, 3.446, 16, 21.4), (101, 7.200, 35, 41.5)],
)
def test_vt_resnets_stay_within_the_papers_budget_and_so_do_the_recommended_ones(depth, flops, fewest, most):
    cost = complexity(f'vt_resnet/vt-resnet{depth}')
    assert cost.flops / 1e9 <= flops
    assert fewest <= cost.parameters / 1e6 <= most
    assert complexity(f'vt_resnet/vt-resnet{depth}-tuned') == cost


@pytest.mark.parametrize(
    ('name', 'flops', 'parameters'),
    [
        ('baselines/resnet18', 1.814, 11.69),
        ('baselines/resnet34', 3.664, 21.80),
        ('baselines/resnet50', 4.089, 25.56),
        ('baselines/resnet101', 7.802, 44.55),
        ('vt_resnet/vt-resnet50-ungrouped', 3.564, 25.31),
        ('vt_resnet/vt-resnet101-ungrouped', 7.276, 44.31),
    ],
)
def test_resnets_cost_what_the_paper_says_and_ungrouped_twins_what_is_counted(name, flops, parameters):
    cost = complexity(name)
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


def ours_and_papers(cell):
    """Both numbers of a cell such as ``'1532 / 1579 (-3.0 %)'`` or ``'5.09x / 6.1x'``."""
    ours, _, paper, *_ = cell.replace('x', '').split()
    return float(ours), float(paper)


@pytest.mark.parametrize('table', ABLATIONS)
def test_every_variant_of_an_ablation_stands_beside_the_papers(table):
    rows, variants = tables.compare_ablation(table), ABLATIONS[table].variants
    papers = load_tables()[ABLATIONS[table].key]
    assert len(rows) == len(papers)
    assert {str(row[ABLATIONS[table].column]) for row in papers} == {*variants}
    assert [*variants.values()].count(None) == 1  # the default
    for row, paper in zip(rows, papers):
        assert (row['model'], row[ABLATIONS[table].column]) == (paper['model'], str(paper[ABLATIONS[table].column]))
        ours, papers_own = ours_and_papers(row['MFLOPs, ours / paper'])
        assert papers_own == paper['mflops']
        assert ours == pytest.approx(paper['mflops'], rel=0.07)
