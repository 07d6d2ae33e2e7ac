"""What a build holds; and its wheel alone, without the repository: models by name, a prediction, configs, the index."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import torch
from tool_runner import ROOT, succeed

USE = """
import importlib.metadata, json, os, subprocess, sys
import vt
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
from mmengine.hub import get_config
from mmengine.infer import BaseInferencer
assert get_config('vt::vt_fpn/vt-fpn_r18_digit-scenes.py').model.neck.type == 'vt.VTFPN'
assert 'vt-fpn_r18_digit-scenes' in BaseInferencer.list_models('vt')
assert 'vt-resnet18_digits' in mmpretrain.list_models('vt-resnet18')
name, checkpoint = 'vt-resnet18-half_digits', 'work_dirs/vt-resnet18-half_digits/epoch_1.pth'
small = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=64', 'val_dataloader.dataset.indices=32']
shown, start = '', [sys.executable, '-m', 'vt']
for words in (
    ['check', name],
    ['train', name, '--cfg-options', *small],
    ['test', name, checkpoint],
    ['predict', name, checkpoint, 'a.png', '--out', 'r.json'],
    ['explore', name, checkpoint, '--images', '1', '--html', 'tokens.html'],
    ['export', name, checkpoint, 'program'],
    ['sweep', name, 'optim_wrapper.optimizer.lr=0.001,0.01', *small],
):
    shown += subprocess.run([*start, *words], check=True, stdout=subprocess.PIPE, text=True).stdout
assert 'python -m vt report sweep work_dirs/sweeps' in shown
assert 'tools/' not in shown
script = ['bash', vt.files.ROOT / 'tools/dist_train.sh', name, '1', '--work-dir', 'two', '--cfg-options', *small]
subprocess.run(script, check=True, env=os.environ | dict(PYTHON=sys.executable))
assert json.load(open('r.json'))[0]['predictions'][0]['name'] in '0123456789'
open('own.py', 'w').write("_base_ = 'vt::vt_resnet/vt-resnet18-half_digits.py'")
assert apis.get_model('own.py', checkpoint).backbone.layer4[0].tokenizer.weight.shape[0] == 16
"""


def test_a_build_holds_every_module_and_the_configs(tmp_path):
    subprocess.run([sys.executable, 'setup.py', '-q', 'build_py', '--build-lib', tmp_path], cwd=ROOT, check=True)
    built = {path.relative_to(tmp_path) for path in tmp_path.rglob('*') if path.is_file()}
    modules = {path for path in (ROOT / 'vt').rglob('*') if path.suffix in ('.py', '.j2', '.css', '.typed')}
    beside = [ROOT / 'model-index.yml', *(ROOT / 'tools').glob('*.*'), *(ROOT / 'tools/analysis').glob('*.py')]
    beside += [path for path in (ROOT / 'configs').rglob('*.*') if path.suffix in ('.md', '.py', '.yml')]
    kept = {path.relative_to(ROOT) for path in modules} | {'vt/.mim' / path.relative_to(ROOT) for path in beside}
    assert built == kept


@pytest.mark.slow
def test_the_wheel_is_enough(tmp_path):
    """In an environment that has the wheel, beside the libraries of this one."""
    command = [sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--no-build-isolation', '-q', '-w', tmp_path, ROOT]
    subprocess.run(command, check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob('visual_transformers-*.whl')
    venv.create(tmp_path / 'env', with_pip=False)
    (packages,) = (tmp_path / 'env/lib').glob('python*/site-packages')
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--no-deps', '-q', '-t', packages, wheel], check=True)
    (packages / 'libraries.pth').write_text(f'{Path(torch.__file__).parents[1]}\n')
    env = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    command = [tmp_path / 'env/bin/python', '-c', USE]
    succeed(subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True))
