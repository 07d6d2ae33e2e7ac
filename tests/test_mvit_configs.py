"""Configs of multiscale vision transformers are the published models: parameters, FLOPs and recipes."""

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS

from vt.apis import find_config
from vt.engine.counting import count_complexity

PUBLISHED = {  # parameters in M, with the head, and FLOPs in G: of the public definition, or of the paper
    'mvit-base-16x4_k400': (36.61, 70.60),
    'mvit-base-32x3_k400': (36.61, 169.96),
    'mvit-base-64x3_k400': (36.61, 455.06),
    'mvit-base24-32x3_k600': (53.12, 235.8),
    'mvitv2-small-16x4_k400': (34.54, 64.22),
    'vit-base-16x4_k400': (87.2, 179.6),
    'mvit-base16_in1k': (36.98, 7.81),
    'mvit-base24_in1k': (53.52, 10.94),
    'mvit-base24-wide_in1k-320px': (72.96, 32.72),
}
TABLE_10 = {'table10_two-scales_k400': 111.1, 'table10_pooled-keys_k400': 148.4}  # beside 179.6 of ViT


def build(name):
    """A config, its model, and what its backbone costs; nothing is computed."""
    cfg = Config.fromfile(find_config(name))
    with torch.device('meta'):
        backbone, head = (MODELS.build(cfg.model[part]).eval() for part in ('backbone', 'head'))
        frames, side = cfg.model.backbone.get('num_frames'), 320 if '320px' in name else 224
        cost = count_complexity(backbone, torch.zeros(1, 3, *([frames] if frames else []), side, side))
    return cfg, torch.nn.Sequential(backbone, head), cost


@pytest.mark.parametrize('name', PUBLISHED)
def test_a_config_is_the_published_model(name):
    cfg, model, cost = build(name)
    parameters, flops = PUBLISHED[name]
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(parameters, rel=0.01)
    assert cost.flops / 1e9 == pytest.approx(flops, rel=0.01)
    assert cfg.model.head.in_channels == model[0].stages[-1].out_channels
    assert cfg.auto_scale_lr.base_batch_size == (4096 if 'in1k' in name else 512)
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-3 if 'in1k' in name else 1.6e-3)


@pytest.mark.parametrize('name', TABLE_10)
def test_cheaper_vits_save_what_table_10_says(name):
    usual, cheaper = (build(each)[2].flops for each in ('vit-base-16x4_k400', name))
    assert (cheaper - usual) / 1e9 == pytest.approx(TABLE_10[name] - 179.6, rel=0.02)
