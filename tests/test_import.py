"""``import vt`` makes every part known, quietly, and loads none that isn't named."""

import subprocess
import sys

import pytest


def python(code):
    return subprocess.run([sys.executable, '-W', 'default', '-c', code], capture_output=True, text=True)


@pytest.mark.parametrize(
    'code',
    [
        'import vt',
        'import vt; vt.models.VTFPN; vt.datasets.Digits; vt.datasets.DigitScenes; vt.engine; vt.record_attention',
        'from vt import models; models.VTFPN; from vt.datasets import *; from vt._libraries import import_library\n'
        'import_library("mmpretrain")',
    ],
)
def test_import_prints_and_warns_of_nothing(code):
    result = python(code)
    assert (result.returncode, result.stdout, result.stderr) == (0, '', '')


@pytest.mark.parametrize(
    'scope', ['mmseg', *(pytest.param(scope, marks=pytest.mark.slow) for scope in ('mmengine', 'mmpretrain'))]
)
def test_every_part_is_known_from_every_scope(scope):
    names = ['FilterTokenizer', 'RecurrentTokenizer', 'TokenTransformer', 'Projector', 'VTModule']
    names += ['VTResNet', 'TokenAverage', 'VTFPN']
    result = python(
        f'import vt; from {scope}.registry import DATASETS, HOOKS, MODELS, OPTIM_WRAPPERS\n'
        f'for name in {names}: assert MODELS.get("vt." + name), name\n'
        'for name in ["Digits", "MovingDigits", "VideoDataset", "DigitScenes"]:\n'
        '    assert DATASETS.get("vt." + name), name\n'
        'assert HOOKS.get("vt.NumClassesHook") and HOOKS.get("vt.FigureHook")\n'
        'assert OPTIM_WRAPPERS.get("vt.BFloat16AmpOptimWrapper")\n'
        'assert MODELS.get("vt.NoSuchPart") is None'
    )
    assert result.returncode == 0, result.stderr


def test_a_run_loads_what_it_needs():
    result = python(
        'import sys, vt\n'
        'assert "torch" not in sys.modules\n'
        'from mmengine.registry import DATASETS, HOOKS, MODELS, RUNNERS\n'
        'assert MODELS.get("vt.VTResNet") and DATASETS.get("vt.Digits") and HOOKS.get("vt.NumClassesHook")\n'
        'assert RUNNERS.get("vt.VTRunner")\n'
        'import vt.commands.train\n'
        'from vt.engine.checks.config import check_config\n'
        'from vt.engine.prepare import read_config\n'
        'check_config(read_config("configs/vt_resnet/vt-resnet18_digits.py"))\n'
        'assert not {"mmseg", "scipy.stats", "sklearn", "matplotlib.pyplot"} & set(sys.modules)\n'
    )
    assert result.returncode == 0, result.stderr


def test_public_classes_are_attributes_of_the_package_and_it_lists_them_unasked():
    result = python(
        'import sys, vt\n'
        'listed = dir(vt)\n'
        'assert {"VTResNet", "VTFPN", "MViT", "TokenBackbone", "Digits", "LoadClips", "apis"} <= set(listed)\n'
        'assert "torch" not in sys.modules\n'
        'for room in (vt.models, vt.datasets, vt.video):\n'
        '    assert len(room.__all__) > 7 and {*room.__all__} <= {*dir(room)} & set(listed)\n'
        '    assert all(getattr(vt, name) is getattr(room, name) for name in room.__all__)\n'
        'assert set(vt.apis.__all__) <= set(dir(vt.apis)) and all(getattr(vt.apis, name) for name in vt.apis.__all__)\n'
        'assert not hasattr(vt, "NoSuchPart")\n'
    )
    assert result.returncode == 0, result.stderr
