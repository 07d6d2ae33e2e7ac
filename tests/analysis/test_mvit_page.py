"""The page on multiscale vision transformers: its tables are those of the configs, and every config is in one."""

import json
import shutil

import pytest
from tool_runner import ROOT

from vt.analysis.mvit_page import write_page

PAGE = ROOT / 'docs/mvit.md'


@pytest.mark.slow
def test_the_tables_are_those_of_the_configs(tmp_path):
    page = shutil.copy(PAGE, tmp_path / PAGE.name)
    write_page(page, ROOT)
    assert page.read_text() == PAGE.read_text()


def test_every_config_of_kinetics_and_imagenet_has_a_row():
    published = json.loads(PAGE.with_suffix('.json').read_text())
    configs = {
        str(path.relative_to(ROOT / 'configs/mvit').with_suffix('')) for path in (ROOT / 'configs/mvit').rglob('*.py')
    }
    rows = published['models'].keys() | published['ablations'].keys()
    assert {name for name in configs if name.split('_')[-1].startswith(('k400', 'k600', 'in1k'))} == rows
