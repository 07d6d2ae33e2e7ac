"""``import vt`` makes every part known, quietly, and loads none that isn't named."""

import subprocess
import sys

import pytest

# One process each, for what is imported first decides what is loaded.
PROGRAMS = dict(
    a_run_loads_what_it_needs="""
import sys, vt
listed = dir(vt)
assert {'VTResNet', 'VTFPN', 'MViT', 'TokenBackbone', 'Digits', 'LoadClips', 'apis'} <= {*listed}
assert 'torch' not in sys.modules
from mmengine.registry import DATASETS, HOOKS, MODELS, RUNNERS
assert MODELS.get('vt.VTResNet') and DATASETS.get('vt.Digits') and HOOKS.get('vt.NumClassesHook')
assert RUNNERS.get('vt.VTRunner')
import vt.commands.train
from vt.engine.config.check_settings import check_config
from vt.engine.config.steps import read_config
check_config(read_config('configs/vt_resnet/vt-resnet18_digits.py'))
assert not {'mmseg', 'scipy.stats', 'sklearn', 'matplotlib.pyplot'} & {*sys.modules}
for room in (vt.models, vt.datasets, vt.video):
    assert len(room.__all__) > 7 and {*room.__all__} <= {*dir(room)} & {*listed}
    assert all(getattr(vt, name) is getattr(room, name) for name in room.__all__)
assert {*vt.apis.__all__} <= {*dir(vt.apis)} and all(getattr(vt.apis, name) for name in vt.apis.__all__)
assert vt.engine and vt.record_attention and not hasattr(vt, 'NoSuchPart')
""",
    every_part_is_known_from_another_scope="""
import vt
from mmseg.registry import DATASETS, HOOKS, MODELS, OPTIM_WRAPPERS
for name in ['FilterTokenizer', 'RecurrentTokenizer', 'TokenTransformer', 'Projector', 'VTModule', 'VTResNet', 'VTFPN']:
    assert MODELS.get('vt.' + name), name
for name in ['Digits', 'MovingDigits', 'VideoDataset', 'DigitScenes']:
    assert DATASETS.get('vt.' + name), name
assert HOOKS.get('vt.NumClassesHook') and HOOKS.get('vt.FigureHook')
assert OPTIM_WRAPPERS.get('vt.BFloat16AmpOptimWrapper')
assert MODELS.get('vt.NoSuchPart') is None
""",
    public_classes_come_before_the_registries="""
from vt import models; models.VTFPN
from vt.datasets import *
from vt._libraries import import_library
import_library('mmpretrain')
""",
)


@pytest.mark.parametrize('program', PROGRAMS)
def test_import(program):
    result = subprocess.run([sys.executable, '-W', 'default', '-c', PROGRAMS[program]], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if 'mmseg' not in PROGRAMS[program]:  # which prints what it does not find
        assert (result.stdout, result.stderr) == ('', '')
