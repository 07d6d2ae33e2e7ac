"""``import vt`` registers everything, quietly."""

import subprocess
import sys


def python(code):
    return subprocess.run([sys.executable, '-W', 'default', '-c', code], capture_output=True, text=True)


def test_import_prints_and_warns_of_nothing():
    result = python('import vt')
    assert (result.returncode, result.stdout, result.stderr) == (0, '', '')


def test_import_registers_every_part():
    names = ['FilterTokenizer', 'RecurrentTokenizer', 'TokenTransformer', 'Projector', 'VTModule']
    names += ['VTResNet', 'TokenAverage', 'VTFPN']
    result = python(
        'import vt; from mmengine.registry import DATASETS, HOOKS, MODELS, OPTIM_WRAPPERS\n'
        f'for name in {names}: assert MODELS.get("vt." + name), name\n'
        'for name in ["Digits", "DigitScenes", "RelationalDigitScenes"]: assert DATASETS.get("vt." + name), name\n'
        'assert HOOKS.get("vt.NumClassesHook") and HOOKS.get("vt.OverlayHook")\n'
        'assert OPTIM_WRAPPERS.get("vt.CPUAmpOptimWrapper")\n'
    )
    assert result.returncode == 0, result.stderr
