"""The ablations: short, complete, and each the same change at every depth. test_configs.py builds them."""

from pathlib import Path

import pytest
from mmengine.config import Config

from docs.reports.complexity import classifier_config
from docs.reports.paper import ABLATIONS

CONFIGS = Path(__file__).parents[1] / 'configs'
LEAVES = sorted((CONFIGS / 'ablations').glob('*/*.py'))
OTHERS = sorted((CONFIGS / 'mvit/ablations').glob('*.py'))
VARIANTS = [(table.key, name) for table in ABLATIONS.values() for name in table.variants.values() if name]


def settings(path):
    """The lines of a config that set something."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith('#')]


@pytest.mark.parametrize('leaf', [*LEAVES, *OTHERS], ids=lambda path: path.stem)
def test_a_leaf_has_at_most_ten_lines_and_changes_the_backbone_of_one_config_alone(leaf):
    assert 2 <= len(settings(leaf)) <= 10
    base = settings(leaf)[0]
    base = Config.fromfile(leaf.parent / base.removeprefix('_base_ = ').strip("'")).to_dict()
    cfg = Config.fromfile(leaf).to_dict()
    assert cfg['model'].pop('backbone') != base['model'].pop('backbone')
    assert cfg == base


@pytest.mark.parametrize(('table', 'variant'), VARIANTS)
def test_a_variant_is_the_same_change_everywhere(table, variant):
    """With 18 and 34 layers: the inherited line differs, no other."""
    leaves = list((CONFIGS / 'ablations' / table).glob(f'*_{variant}_*.py'))
    assert {classifier_config(f'VT-R{depth}', variant, table) for depth in (18, 34)} == set(leaves)
    assert len({tuple(settings(leaf)[1:]) for leaf in leaves}) == 1


def test_no_leaf_is_left_over():
    assert {(leaf.parent.name, leaf.stem.split('_')[1]) for leaf in LEAVES} == set(VARIANTS)
