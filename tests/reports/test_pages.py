"""The pages are what one command writes of the records and measurements; costs are those of the paper."""

import json

import pytest
from tool_runner import ROOT

from docs.reports.__main__ import parse_args
from docs.reports.complexity import compare_ablation, count_config
from docs.reports.pages import FOLDERS, MARK, PLACES, find_place, render
from docs.reports.paper import ABLATIONS, DETECTRON2_CLASSES, SEGMENTATION, load_tables
from vt.errors import UserError

RECORD = ROOT / 'docs/records/digits-half.json'


def run(*arguments):
    args = parse_args([*map(str, arguments)])
    args.function(args)


def test_the_committed_pages_are_what_is_written():
    stale = [path for path, text in render().items() if (ROOT / path).read_bytes().decode() != text]
    assert stale == [], 'python -m docs.reports writes them again'


def test_every_table_stands_in_a_page():
    pages = [ROOT / 'README.md', *(page for place in FOLDERS for page in (ROOT / place).glob('*.md'))]
    assert {find_place(mark) for page in pages for mark in MARK.findall(page.read_text())} == PLACES.keys()


def test_runs_of_ones_own_stand_beside_the_papers(tmp_path, capsys):
    run('ablation', RECORD, '--out', tmp_path / 'out')
    assert 'Table 2 on digits, 10 epochs: ' in capsys.readouterr().out
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {'tables.md', 'tables.csv', 'changes.png'}


def test_runs_of_ones_own_that_cannot_be_read_or_share_no_table_are_named(tmp_path, capsys):
    for damage in ('{', '{"config": 3}'):
        (tmp_path / 'training.json').write_text(damage)
        with pytest.raises(UserError, match=r'training\.json'):
            run('ablation', RECORD, tmp_path)
        assert 'Table 2 on digits, 10 epochs: ' in capsys.readouterr().out
    costs = dict(metrics={'accuracy/top1': 1.0}, flops=1, parameters=1)
    record = dict(config='configs/x_digits.py', seed=0, length='1 epochs', options={}) | costs
    (tmp_path / 'training.json').write_text(json.dumps(record))
    with pytest.raises(UserError, match='no two of these runs stand in one table'):
        run('ablation', tmp_path)


def complexity(name):
    return count_config(ROOT / f'configs/{name}_8xb32-90e_in1k.py')[0]


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
@pytest.mark.parametrize(('depth', 'table', 'whole'), [(50, 9, 159.1), (101, 10, 54.4)])
def test_fpn_costs_what_the_paper_says_and_vt_fpn_no_more_than_the_papers(depth, table, whole):
    _, size, recipe = SEGMENTATION[table]
    fpn, neck = count_config(ROOT / f'configs/baselines/fpn_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
    vt_fpn, vt_neck = count_config(ROOT / f'configs/vt_fpn/vt-fpn_r{depth}_{recipe}.py', size, DETECTRON2_CLASSES)
    assert fpn.flops / 1e9 == pytest.approx(whole, abs=0.05)
    assert neck.flops / 1e9 == pytest.approx({9: 55.10, 10: 12.89}[table], abs=0.005)
    assert vt_neck.flops / 1e9 <= {9: 8.3, 10: 1.95}[table]
    assert fpn.flops - vt_fpn.flops == neck.flops - vt_neck.flops


@pytest.mark.parametrize('table', ABLATIONS)
def test_every_variant_of_an_ablation_stands_beside_the_papers(table):
    rows, variants = compare_ablation(table), ABLATIONS[table].variants
    papers = load_tables()[ABLATIONS[table].key]
    assert len(rows) == len(papers)
    assert {str(row[ABLATIONS[table].column]) for row in papers} == {*variants}
    assert [*variants.values()].count(None) == 1  # the default
    for row, paper in zip(rows, papers):
        assert (row['model'], row[ABLATIONS[table].column]) == (paper['model'], str(paper[ABLATIONS[table].column]))
        ours, _, papers_own, *_ = row['MFLOPs, ours / paper'].split()  # such as 1532 / 1579 (-3.0 %)
        assert float(papers_own) == paper['mflops'] == pytest.approx(float(ours), rel=0.07)
