"""Pages of the folders of configs and the metafile: what is counted and recorded, and what OpenMMLab's tools read."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from mmpretrain.apis import ModelHub
from tool_runner import ROOT

from docs.reports import forward_files, metafiles, model_pages
from vt.apis.model_zoo import find_source
from vt.engine.config.compose import short_models
from vt.engine.config.steps import read_config

CALL = re.compile(r'^vt (?:dist-)?train (\S+)(?: weights=(\w+))?', re.M)
HEADER = re.compile(r'^# vt train (\S+)', re.M)
FEW = ('vt-resnet18_digits', 'vt-fpn_r18_digit-scenes', 'mvit-tiny_moving-digits', 'vt-cls_r18_1xb128-90e_cifar10')
FEW += ('vt-resnet18_8xb256-400e-distill_in1k', 'swin-tiny_16xb64-300e_in1k')


@pytest.fixture(scope='module')
def entries():
    return {entry['Name']: entry for entry in metafiles.read_models().values()}


def test_no_page_is_left_over_and_every_folder_has_a_paper():
    """What stands in them is compared with all other pages."""
    assert metafiles.PAPERS.keys() == metafiles.leaf_configs().keys()
    assert all(about['paper'][1].startswith('https://') for about in metafiles.PAPERS.values())
    assert {*(ROOT / 'configs').rglob('README.md'), metafiles.METAFILE} == set(model_pages.render())


@pytest.mark.parametrize('name', FEW)
def test_entries_are_what_is_counted(name, entries):
    assert metafiles.describe(ROOT / entries[name]['Config'])['Metadata'] == entries[name]['Metadata']


@pytest.mark.parametrize('name', ['vt-resnet18', 'swin-tiny'])
def test_the_files_of_a_forward_pass_are_recorded(name):
    traced = forward_files.trace_files(ROOT / model_pages.representatives()[name])
    assert traced == forward_files.read_files()[name]


def test_every_base_config_has_its_files():
    recorded = forward_files.read_files()
    assert recorded.keys() == model_pages.representatives().keys()
    assert all((ROOT / file).exists() for files in recorded.values() for file in files if file.startswith('vt/'))


def test_models_are_called_as_pages_and_headers_say():
    known = {path.stem: path for path in (ROOT / 'configs').rglob('*.py') if '_base_' not in path.parts}
    headers = {path.stem: HEADER.findall(path.read_text()) for path in known.values()}
    assert len([*filter(None, headers.values())]) > 200
    assert [name for name, own in headers.items() if own and (own[-1] != name or not {*own} <= known.keys())] == []
    calls = [call for page in (ROOT / 'configs').rglob('README.md') for call in CALL.findall(page.read_text())]
    assert len(calls) > 80
    for name, library in calls:
        assert Path(find_source(name)) == (short_models() | known)[name]
        if library:
            cfg = read_config(str(known[name]), dict(weights=library))
            start = cfg.load_from or cfg.model.backbone.init_cfg.checkpoint
            assert start.startswith(f'{library}://')


def test_the_librarys_reader_finds_no_fault():
    from modelindex.load_model_index import load

    index = load(str(ROOT / 'model-index.yml'))
    index.build_models_with_collections()
    with redirect_stdout(StringIO()):
        assert not index.check()
    models = {model.name: model for model in index.models}
    assert models.keys() == {path.stem for paths in metafiles.leaf_configs().values() for path in paths}
    assert models['swin-tiny_digits'].full_model.paper['Title'].startswith('Swin Transformer: Hierarchical')
    assert not any(ModelHub.has(name) for name in FEW)  # until it is told
