"""The wheel alone, in an environment without the repository: models by name, a prediction, configs, the index."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import torch
from tool_runner import ROOT

USE = """
import importlib.metadata, json, subprocess, sys, time
start = time.perf_counter()
import vt
seconds = time.perf_counter() - start
import numpy as np, cv2, torch
from vt import apis
assert importlib.metadata.version('visual-transformers') == vt.__version__
assert '.mim' in apis.find_config('vt-resnet18_digits').parts
model = apis.get_model('vt-resnet18_digits')
torch.save(dict(state_dict=model.state_dict()), 'x.pth')
cv2.imwrite('a.png', np.full((40, 60, 3), 200, np.uint8))
(result,) = apis.ClassificationInferencer('vt-resnet18_digits', 'x.pth')('a.png')
assert result['pred_class'] in '0123456789'
import mmpretrain
apis.register_models()
from mmengine.config import Config
from mmengine.hub import get_config
from mmengine.infer import BaseInferencer
assert get_config('vt::vt_fpn/vt-fpn_r18_digit-scenes.py').model.neck.type == 'vt.VTFPN'
open('own.py', 'w').write("_base_ = 'vt::vt_resnet/vt-resnet18_digits.py'")
assert Config.fromfile('own.py').model.backbone.num_tokens == 8
assert 'vt-fpn_r18_digit-scenes' in BaseInferencer.list_models('vt')
assert 'vt-resnet18_digits' in mmpretrain.list_models('vt-resnet18')
tools = apis.find_config('vt-resnet18_digits').parents[2] / 'tools'
command = [sys.executable, tools / 'predict.py', 'vt-resnet18_digits', 'x.pth', 'a.png', '--out', 'r.json']
subprocess.run(command, check=True)
assert json.load(open('r.json'))[0]['predictions'][0]['name'] == result['pred_class']
print('import', seconds)
"""


@pytest.mark.slow
def test_the_wheel_is_enough(tmp_path):
    command = [sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--no-build-isolation', '-q', '-w', tmp_path, ROOT]
    subprocess.run(command, check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob('visual_transformers-*.whl')
    venv.create(tmp_path / 'env', with_pip=False)
    (packages,) = (tmp_path / 'env/lib').glob('python*/site-packages')
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-deps', '-q', '-t', packages, wheel], check=True)
    (packages / 'libraries.pth').write_text(f'{Path(torch.__file__).parents[1]}\n')
    python = tmp_path / 'env/bin/python'
    env = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    result = subprocess.run([python, '-c', USE], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stdout.splitlines() if line.startswith('import '))
    assert float(line.split()[1]) < 3  # a tenth of it where nothing else runs
