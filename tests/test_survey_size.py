"""How much code the models of the survey are."""

import ast
import inspect
import json
from pathlib import Path

import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from vt.apis import find_config

SURVEY_MODELS = json.loads((ROOT / 'docs/reports/survey_models.json').read_text())['models']


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
