"""The networks of the paper's first version, by config alone; its parts are in ``test_parts.py``."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from tool_runner import ROOT

from vt.models import PositionEncoder, ValueTransformer

CONFIGS = ROOT / 'configs/vt_early'


@pytest.mark.parametrize('depth', [18, 34, 50, 101])
def test_the_classifiers_are_the_first_versions_by_config_alone(depth):
    torch.manual_seed(0)
    cfg = Config.fromfile(CONFIGS / f'vt-early-resnet{depth}_8xb32-90e_in1k.py')
    backbone = MODELS.build(cfg.model.backbone)
    backbone.init_weights()
    tokenizers = [type(module.tokenizer).__name__ for module in backbone.layer4]
    assert tokenizers == ['FilterTokenizer'] + ['DynamicTokenizer'] * (len(tokenizers) - 1)
    assert not any(list(module.projector.parameters()) for module in backbone.layer4)
    assert {module.relation.num_heads for module in backbone.layer4} == {16}
    (tokens,) = backbone(torch.randn(2, 3, 64, 64))
    assert tokens.shape == (2, 16, 1024)
    assert 0.05 < tokens.square().mean().sqrt() < 1  # a deep stack neither grows nor shrinks


def test_the_segmentor_is_the_first_versions_by_config_alone():
    cfg = Config.fromfile(CONFIGS / 'vt-early-fpn_r50_4xb8-90k_coco-stuff164k-800x1216.py')
    neck = MODELS.build(cfg.model.neck)
    assert {type(tokenizer.position_encoder) for tokenizer in neck.tokenizers} == {PositionEncoder}
    assert isinstance(neck.relation, ValueTransformer)
    assert [(p.num_heads, p.query.groups, p.key.groups) for p in neck.projectors] == [(16, 16, 1)] * 4
    sides = (16, 8, 4, 2)
    maps = [torch.randn(1, channels, side, 2 * side) for channels, side in zip(cfg.model.neck.in_channels, sides)]
    assert [tuple(x.shape) for x in neck(maps)] == [(1, 256, side, 2 * side) for side in sides]
