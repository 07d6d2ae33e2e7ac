"""Pages of the folders of configs and the metafile: what is counted and recorded, and what OpenMMLab's tools read."""

import re
from contextlib import redirect_stdout
from io import StringIO

import pytest
import timm
import torch
from mmpretrain.apis import ModelHub
from tool_runner import ROOT

from docs.reports import forward_files, metafiles, model_pages
from vt.engine.config.check_settings import check_config
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_model

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


def test_a_backbone_starts_from_timms_weights_as_its_page_says(tmp_path):
    page = (ROOT / 'configs/swin/README.md').read_text()
    (name,) = re.findall(r"timm\.create_model\('(\w+)', pretrained=True\)", page)
    options = dict(re.findall(r'(model\.backbone\.init_cfg\.\w+)=(\S+)', page))
    assert options['model.backbone.init_cfg.checkpoint'] == f'{name}.pth'
    public = timm.create_model(name)
    torch.save(public.state_dict(), tmp_path / f'{name}.pth')
    options['model.backbone.init_cfg.checkpoint'] = str(tmp_path / f'{name}.pth')
    cfg = read_config(str(ROOT / 'configs/swin/swin-tiny_16xb64-300e_in1k.py'), options)
    check_config(cfg, options)
    model = build_model(cfg)
    model.init_weights()
    assert torch.equal(model.backbone.stages[0].embed.projection.weight, public.patch_embed.proj.weight)


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
