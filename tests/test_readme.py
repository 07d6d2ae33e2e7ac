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
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT

README = (ROOT / 'README.md').read_text()
BLOCKS = {kind: re.findall(rf'```{kind}\n(.*?)```', README, re.DOTALL) for kind in ('bash', 'python')}
LEFT_OUT = ('.git', '.venv', '.cache', 'work_dirs', '__pycache__', '*.egg-info', 'benchmarks')
# Blocks that ran before this test did: they make the environment that it runs in.
INSTALLING = ('pip install', 'tests/run.sh')
SMALL = {
    'configs/_base_/default_runtime.py': "default_hooks['checkpoint'].update(interval=15, save_best=None)\n",
    'configs/_base_/schedules/adamw_bs32-15e.py': "train_cfg['val_interval'] = 15\n",
    'configs/_base_/datasets/digits.py': (
        "train_dataloader['dataset']['indices'], val_dataloader['dataset']['indices'] = 64, 16\n"
        "train_pipeline[0]['scale'] = test_pipeline[0]['scale'] = train_pipeline[2]['crop_size'] = 32\n"
    ),
    'configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py': (
        'train_dataloader = dict(batch_size=2, num_workers=0)\nval_dataloader = test_dataloader = dict(num_workers=0)\n'
        'train_cfg = dict(max_epochs=1)\n'
    ),
    'tools/environment.sh': f'install_vt() {{ :; }}\npython="{sys.executable}"\n',
}


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    """The tree with small data, and a folder of images as the README names one."""
    folder = tmp_path_factory.mktemp('clone') / 'vt'
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name, text in SMALL.items():
        with (folder / name).open('a') as file:
            file.write(text)
    generator = np.random.default_rng(0)
    for name in ('train/cat', 'train/dog', 'val/cat', 'val/dog'):
        (folder / 'my images' / name).mkdir(parents=True)
        cv2.imwrite(str(folder / 'my images' / name / 'a.png'), generator.integers(0, 256, (40, 50, 3), np.uint8))
    return folder


def run_block(block, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH=str(folder), CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    result = subprocess.run(
        ['bash', '-euo', 'pipefail', '-c', block], cwd=folder, env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


@pytest.mark.slow
def test_the_quick_start_ends_in_a_table_and_a_picture(clone):
    (block,) = (block for block in BLOCKS['bash'] if 'quickstart' in block)
    output = run_block(block, clone)
    assert all(name in output for name in ('resnet18_digits', 'vt-resnet18_digits', 'images/s', 'Time of each step'))
    height, width = cv2.imread(str(clone / 'work_dirs/vt-resnet18_digits/tokens.png')).shape[:2]
    assert width > height > 300
    shutil.rmtree(clone / 'work_dirs')


TRAINING = [block for block in BLOCKS['bash'] if 'tools/train.py' in block]


@pytest.mark.parametrize(
    'block', [pytest.param(block, marks=[pytest.mark.slow] if 'dist_train' in block else []) for block in TRAINING]
)
def test_commands_run(block, clone):
    run_block(block, clone)
    assert list((clone / 'work_dirs').glob('*/epoch_*.pth'))
    shutil.rmtree(clone / 'work_dirs')


def test_no_other_command_is_there():
    others = [block for block in BLOCKS['bash'] if not any(word in block for word in ('quickstart', 'tools/train.py'))]
    assert len(others) == len(INSTALLING)
    assert all(any(word in block for word in INSTALLING) for block in others)
    assert 'bash tests/run.sh' in (ROOT / '.ci/run').read_text()


def test_python_blocks_run_one_after_the_other():
    by_name, model, reading, ablation = BLOCKS['python']
    names = {}
    exec(by_name, names)
    assert 'vt-resnet18_8xb32-90e_in1k' in names['names']
    assert names['tokens'].shape == (2, 16, 1024)
    exec(model, names)
    exec(reading, names)
    record = names['records']['backbone.layer4.0.tokenizer']
    assert record.attention.shape == (2, 1, 16, 14, 14)
    assert record.output.shape == (2, 16, 1024)
    path = ROOT / 'configs/ablations/table3_tokenizer/vt-resnet18_pooling_8xb32-90e_in1k.py'
    assert ablation in path.read_text()
    assert type(MODELS.build(Config.fromfile(path).model.backbone).layer4[0].tokenizer).__name__ == 'PoolingTokenizer'
