"""Configs of multiscale vision transformers: their models are the published ones, their ablations short."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS

from vt.apis import find_config
from vt.engine.counting import count_complexity

CONFIGS = Path(__file__).parents[1] / 'configs/mvit'
LEAVES = sorted((CONFIGS / 'ablations').glob('*.py'))
PARAMETERS = {  # in M, with the head: of the public definition, or of the paper
    'mvit-base-16x4_k400': 36.61,
    'mvit-base-32x3_k400': 36.61,
    'mvit-base-64x3_k400': 36.61,
    'mvit-base24-32x3_k600': 53.12,
    'mvitv2-small-16x4_k400': 34.54,
    'vit-base-16x4_k400': 87.2,
    'mvit-base16_in1k': 36.98,
    'mvit-base24_in1k': 53.52,
    'mvit-base24-wide_in1k-320px': 72.96,
}


def build(path):
    cfg = Config.fromfile(path)
    with torch.device('meta'):
        parts = [MODELS.build(cfg.model[part]) for part in ('backbone', 'head')]
    return cfg, torch.nn.Sequential(*parts).eval()


@pytest.mark.parametrize('name', PARAMETERS)
def test_a_config_is_the_published_model(name):
    cfg, model = build(find_config(name))
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(PARAMETERS[name], rel=0.01)
    head = cfg.model.head
    assert head.in_channels == model[0].stages[-1].out_channels
    assert cfg.auto_scale_lr.base_batch_size == (4096 if 'in1k' in name else 512)
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-3 if 'in1k' in name else 1.6e-3)


@pytest.mark.parametrize('leaf', LEAVES, ids=lambda path: path.stem)
def test_an_ablation_has_at_most_ten_lines_and_changes_its_backbone_alone(leaf):
    lines = [line for line in leaf.read_text().splitlines() if line and not line.startswith('#')]
    assert 2 <= len(lines) <= 10
    base = Config.fromfile(leaf.parent / lines[0].removeprefix('_base_ = ').strip("'")).to_dict()
    cfg = Config.fromfile(leaf).to_dict()
    assert cfg['model'].pop('backbone') != base['model'].pop('backbone')
    assert cfg == base


@pytest.mark.parametrize(
    ('name', 'flops'), [('two-scales', 111.1), ('pooled-keys', 148.4)], ids=['two-scales', 'pooled-keys']
)
def test_cheaper_vits_save_what_table_10_says(name, flops):
    paths = CONFIGS / 'vit-base-16x4_k400.py', CONFIGS / f'ablations/table10_{name}_k400.py'
    usual, cheaper = (
        count_complexity(build(path)[1][0], torch.empty(1, 3, 16, 224, 224, device='meta')).flops for path in paths
    )
    assert (cheaper - usual) / 1e9 == pytest.approx(flops - 179.6, rel=0.02)
