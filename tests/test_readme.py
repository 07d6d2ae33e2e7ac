"""Every block of the README runs, in a copy of the tree whose data sets and epochs are small."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import torchvision
from mmpretrain.registry import MODELS as CLASSIFIERS
from mmseg.registry import MODELS as SEGMENTORS
from tool_runner import ROOT

from vt import apis

README = (ROOT / 'README.md').read_text()
BLOCKS = {kind: re.findall(rf'```{kind}\n(.*?)```', README, re.DOTALL) for kind in ('bash', 'python')}
LEFT_OUT = ('.git', '.venv', '.cache', 'work_dirs', '__pycache__', '*.egg-info', 'benchmarks')
# Blocks that ran before this test did.
INSTALLING = ('pip install', 'tests/run.sh')
SMALL = {  # what is added to a file
    'configs/_base_/default_runtime.py': "default_hooks['checkpoint'].update(interval=15, save_best=None)\n",
    'configs/_base_/schedules/adamw_bs32-15e.py': "train_cfg['val_interval'] = 15\n",
    'configs/_base_/datasets/digits.py': (
        "train_dataloader['dataset']['indices'], val_dataloader['dataset']['indices'] = 64, 16\n"
        "train_pipeline[0]['scale'] = test_pipeline[0]['scale'] = train_pipeline[2]['crop_size'] = 32\n"
    ),
    'configs/_base_/datasets/digit-scenes.py': (
        "train_dataloader.update(batch_size=2)\nval_dataloader['dataset']['num_scenes'] = 2\n"
    ),
    'configs/vt_fpn/vt-fpn_r18_digit-scenes.py': 'train_cfg = dict(max_iters=2, val_interval=2)\n',
    'configs/vt_resnet/vt-resnet18-tuned_1xb32-90e_image-folder.py': (
        'train_dataloader = dict(batch_size=2, num_workers=0)\nval_dataloader = test_dataloader = dict(num_workers=0)\n'
        'train_cfg = dict(max_epochs=1)\n'
    ),
    'configs/vt_resnet/vt-resnet18-tuned-pretrained_1xb32-30e_image-folder.py': "train_cfg['max_epochs'] = 1\n",
    'tools/environment.sh': f'install_vt() {{ :; }}\npython="{sys.executable}"\n',
}
# The last iteration that the README names, and that of the small run.
ITERATIONS = ('iter_1200', 'iter_2')


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    """The tree with small data, a folder of images, public weights, and the model of the quick start, untrained."""
    folder = tmp_path_factory.mktemp('clone') / 'vt'
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name, text in SMALL.items():
        with (folder / name).open('a') as file:
            file.write(text)
    generator = np.random.default_rng(0)
    for name in ('train/cat', 'train/dog', 'val/cat', 'val/dog'):
        (folder / 'my images' / name).mkdir(parents=True)
        cv2.imwrite(str(folder / 'my images' / name / 'a.png'), generator.integers(0, 256, (40, 50, 3), np.uint8))
    weights = folder / '.cache/torch/hub/checkpoints'
    weights.mkdir(parents=True)
    name = Path(torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url).name
    torch.save(torchvision.models.resnet18().state_dict(), weights / name)
    (folder / 'work_dirs/vt-resnet18_digits').mkdir(parents=True)
    model = apis.get_model('vt-resnet18_digits')
    torch.save(dict(state_dict=model.state_dict()), folder / 'work_dirs/vt-resnet18_digits/epoch_15.pth')
    return folder


def run_block(block, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH=str(folder), CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    env |= dict(TORCH_HOME=str(folder / '.cache/torch'))
    result = subprocess.run(
        ['bash', '-euo', 'pipefail', '-c', block], cwd=folder, env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


@pytest.mark.slow
def test_the_quick_start_ends_in_a_table_and_a_figure(clone):
    shutil.rmtree(clone / 'work_dirs')
    (block,) = (block for block in BLOCKS['bash'] if 'quickstart' in block)
    output = run_block(block, clone)
    assert all(name in output for name in ('resnet18_digits', 'vt-resnet18_digits', 'images/s', 'Time of each step'))
    height, width = cv2.imread(str(clone / 'work_dirs/vt-resnet18_digits/tokens.png')).shape[:2]
    assert width > height > 300


# Words of each task's block, and what it leaves in ``work_dirs``.
TASKS = {
    'data_root="my images"\n': 'vt-resnet18-tuned_1xb32-90e_image-folder/epoch_1.pth',
    'pretrained': 'fine-tuned/epoch_1.pth',
    'digit-scenes': 'overlays',
    'predict.py': 'predictions.json',
    'explore.py': 'report.html',
}
SLOW = ('pretrained', 'digit-scenes', 'predict.py', 'explore.py')


@pytest.mark.parametrize(
    'words', [pytest.param(words, marks=[pytest.mark.slow] if words in SLOW else []) for words in TASKS]
)
def test_each_task_leaves_its_result(words, clone):
    block = next(block for block in BLOCKS['bash'] if words in block)
    output = run_block(block.replace(*ITERATIONS), clone)
    result = clone / 'work_dirs' / TASKS[words]
    assert any(result.rglob('*.png')) if result.name == 'overlays' else result.stat().st_size > 1000
    if words == 'pretrained':
        assert re.search(r'torchvision://resnet18: \d+ tensors loaded', output)


def test_no_other_command_is_there():
    others = [block for block in BLOCKS['bash'] if not any(words in block for words in ('quickstart', *TASKS))]
    assert [next(words for words in INSTALLING if words in block) for block in others] == list(INSTALLING)


def test_python_blocks_run_one_after_the_other():
    in_python, in_configs = BLOCKS['python']
    names = {}
    exec(in_python, names)
    assert 'vt-resnet18_8xb32-90e_in1k' in names['names']
    assert names['made'].tokens['backbone.layer4.0.tokenizer'].shape == (2, 16, 1024)
    assert names['made'].attention['backbone.layer4.0.tokenizer'].shape == (2, 1, 16, 14, 14)
    exec(in_configs, names)
    backbone = CLASSIFIERS.build(names['backbone'])
    assert [tuple(each.shape) for each in backbone(torch.rand(1, 3, 64, 64))]
    maps = [torch.rand(1, 256 * 2**level, 16 >> level, 16 >> level) for level in range(4)]
    assert [each.shape[1] for each in SEGMENTORS.build(names['neck'])(maps)] == [256] * 4
