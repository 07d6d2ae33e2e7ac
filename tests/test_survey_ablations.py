"""One line swaps a component of a model for another's: what stands in the network then, and how much code it is."""

import ast
import inspect
import json
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from vt.apis import find_config
from vt.models import (
    AbsolutePosition,
    ClassAttention,
    OnMap,
    RelativePositionBias,
    TokenFuser,
    TokenizerEmbed,
)

SURVEY_MODELS = json.loads((ROOT / 'docs/reports/survey_models.json').read_text())['models']
# Of each the part that is gone, how many there are of the new one, and what the blocks see at 224x224.
SWAPS = {
    'swin-tiny_lepe_digits': (RelativePositionBias, OnMap, 12, None),
    'pvt-small_peg_digits': (AbsolutePosition, OnMap, 4, None),
    'deit-small_tokenlearner_digits': (None, TokenizerEmbed, 1, [16, 9]),
    'cait-s24_vt-tokens_digits': (ClassAttention, TokenizerEmbed, 1, [16, 16]),
    'vit-tokenlearner_fuser_digits': (TokenizerEmbed, TokenFuser, 6, None),
}


def test_a_system_is_a_short_config_and_a_part_a_short_file():
    bases = [ROOT / f'configs/_base_/models/{entry}.py' for entry in SURVEY_MODELS]
    folders = {find_config(f'{entry}_16xb64-300e_in1k').parent for entry in SURVEY_MODELS}
    survey_models = [*bases, *(path for folder in folders for path in folder.rglob('*.py'))]
    assert max(len(path.read_text().splitlines()) for path in survey_models) <= 60
    assert max(len(path.read_text().splitlines()) for path in find_parts(SURVEY_MODELS)) <= 200


def test_all_parts_together_are_few_lines_of_code():
    """Without docstrings, comments and empty lines; the backbones that put them together are counted apart."""
    assert sum(count_code(path) for path in find_parts(SURVEY_MODELS) if path.parent.name != 'backbones') <= 1817


def find_parts(survey_models) -> set[Path]:
    """The files of this project that define what the models are made of."""
    files = set()
    for entry in survey_models:
        cfg = Config.fromfile(find_config(f'{entry}_16xb64-300e_in1k'))
        with torch.device('cpu' if cfg.model.backbone.type == 'TNT' else 'meta'):
            classes = {each for part in MODELS.build(cfg.model).modules() for each in type(part).__mro__}
        files |= {inspect.getfile(each) for each in classes if each.__module__.startswith('vt.')}
    return {Path(path) for path in files}


def count_code(path: Path) -> int:
    text = path.read_text()
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith('#') for at, line in lines if at not in docstrings)


@pytest.mark.parametrize('name', SWAPS)
def test_a_swap_is_ten_lines_and_one_part(name):
    path = find_config(name)
    assert len(path.read_text().splitlines()) <= 10
    gone, new, number, tokens = SWAPS[name]
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
