"""One line swaps a component of a system for another's: what stands in the network then."""

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from vt.models import (
    AbsolutePosition,
    ClassAttention,
    OnMap,
    RelativePositionBias,
    TokenFuser,
    TokenizerEmbed,
)

ABLATIONS = sorted((ROOT / 'configs/survey/ablations').glob('*.py'))
# Of each the part that is gone, how many there are of the new one, and what the blocks see at 224x224.
SWAPS = {
    'swin-tiny_lepe_digits': (RelativePositionBias, OnMap, 12, None),
    'pvt-small_peg_digits': (AbsolutePosition, OnMap, 4, None),
    'deit-small_tokenlearner_digits': (None, TokenizerEmbed, 1, [16, 9]),
    'cait-s24_vt-tokens_digits': (ClassAttention, TokenizerEmbed, 1, [16, 16]),
    'vit-tokenlearner_fuser_digits': (TokenizerEmbed, TokenFuser, 6, None),
}


def test_a_system_is_a_short_config_and_a_part_a_short_file():
    systems = [*(ROOT / 'configs/_base_/survey').glob('*.py'), *(ROOT / 'configs/survey').rglob('*.py')]
    assert max(len(path.read_text().splitlines()) for path in systems) <= 60
    parts = [path for path in (ROOT / 'vt/models').rglob('*.py') if path.parent.name != 'backbones']
    assert max(len(path.read_text().splitlines()) for path in parts) <= 200


@pytest.mark.parametrize('path', ABLATIONS, ids=lambda path: path.stem)
def test_a_swap_is_ten_lines_and_one_part(path):
    assert len(path.read_text().splitlines()) <= 10
    gone, new, number, tokens = SWAPS[path.stem]
    config = Config.fromfile(path).model.backbone.to_dict()
    with torch.device('meta'):
        backbone = MODELS.build(config)
        backbone.eval()
        parts = list(backbone.modules())
        assert gone is None or not any(isinstance(part, gone) for part in parts)
        assert sum(isinstance(part, new) for part in parts) == number
        seen = []
        for stage in backbone.stages:
            stage.blocks[0].register_forward_pre_hook(lambda block, args: seen.append(args[0].shape[1]))
        backbone(torch.zeros(1, 3, config['image_size'], config['image_size']))
    assert tokens is None or seen == tokens


def test_all_of_them_are_known():
    assert {path.stem for path in ABLATIONS} == set(SWAPS)
