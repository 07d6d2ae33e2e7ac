"""The index of models is what is counted and recorded, and OpenMMLab's own tools read it."""

from contextlib import redirect_stdout
from io import StringIO

import pytest
import yaml
from mmengine.registry import DefaultScope
from mmpretrain.apis import ModelHub
from tool_runner import ROOT

from vt.analysis import metafiles

FEW = ('vt-resnet18_digits', 'vt-fpn_r18_digit-scenes', 'mvit-tiny_moving-digits', 'vt-cls_r18_1xb128-90e_cifar10')
FEW += ('vt-resnet18_8xb256-400e-distill_in1k', 'vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216')
AGAIN = 'python tools/analysis/report.py metafiles writes them again'


@pytest.fixture(scope='module')
def entries():
    paths = yaml.safe_load((ROOT / metafiles.INDEX).read_text())['Import']
    return {entry['Name']: entry for path in paths for entry in yaml.safe_load((ROOT / path).read_text())['Models']}


def test_every_config_is_in_a_metafile_and_no_other(entries):
    paths = [path for room in metafiles.leaf_configs(ROOT).values() for path in room]
    assert {entry['Config'] for entry in entries.values()} == {path.relative_to(ROOT).as_posix() for path in paths}, (
        AGAIN
    )


@pytest.mark.parametrize('name', FEW)
def test_entries_are_what_is_counted_and_recorded(name, entries):
    scores = metafiles.read_scores(ROOT / 'docs/records')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        assert metafiles.describe(ROOT / entries[name]['Config'], ROOT, scores) == entries[name], AGAIN


def test_flops_have_attention_and_the_papers_size(entries):
    assert entries['vt-resnet18_8xb32-90e_in1k']['Metadata']['FLOPs'] == pytest.approx(1.532e9, rel=1e-3)  # design
    assert entries['mvit-base-16x4_k400']['Metadata']['FLOPs'] == pytest.approx(70.5e9, rel=0.01)  # published
    assert entries['vt-fpn_r50_4xb8-90k_coco-stuff164k-800x1216']['Metadata']['Input'] == '3x800x1216'
    assert entries['swin-tiny_16xb64-300e_in1k']['Paper'] == 'Liu et al., ICCV 2021'


def test_scores_alone_are_written_again(tmp_path):
    for path in (*(ROOT / 'configs').glob('*/metafile.yml'), *(ROOT / 'docs/records').glob('*.json')):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    metafiles.write_scores(tmp_path)
    for path in (ROOT / 'configs').glob('*/metafile.yml'):
        assert (tmp_path / path.relative_to(ROOT)).read_text() == path.read_text(), AGAIN


def test_the_librarys_reader_finds_no_fault():
    from modelindex.load_model_index import load

    index = load(str(ROOT / metafiles.INDEX))
    index.build_models_with_collections()
    with redirect_stdout(StringIO()):
        assert not index.check()
    assert {model.name for model in index.models} >= set(FEW)
    assert not any(ModelHub.has(name) for name in FEW)  # until it is told
