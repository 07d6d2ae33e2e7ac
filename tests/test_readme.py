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
from apis.published_files import put_in_hub
from mmpretrain.registry import MODELS as CLASSIFIERS
from mmseg.registry import MODELS as SEGMENTORS
from tool_runner import ROOT

README = (ROOT / 'README.md').read_text()
BLOCKS = {kind: re.findall(rf'```{kind}\n(.*?)```', README, re.DOTALL) for kind in ('bash', 'python')}
LEFT_OUT = ('.git', '.venv', '.cache', 'work_dirs', '__pycache__', '*.egg-info', 'benchmarks')
QUICK = 'vt-resnet18-tuned_digits'
SMALL = {  # what is added to a file
    'configs/_base_/default_runtime.py': "default_hooks['checkpoint'].update(interval=15, save_best=None)\n",
    'configs/_base_/schedules/adamw_bs32-15e.py': "train_cfg['val_interval'] = 15\n",
    'configs/_base_/datasets/digits.py': (
        "train_dataloader['dataset']['indices'], val_dataloader['dataset']['indices'] = 64, 16\n"
        "train_pipeline[0]['scale'] = test_pipeline[0]['scale'] = train_pipeline[2]['crop_size'] = 32\n"
    ),
    'tools/environment.sh': f'install_vt() {{ :; }}\npython="{sys.executable}"\n',
}


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    """The tree with small data, a folder of images, and public weights."""
    folder = tmp_path_factory.mktemp('clone') / 'vt'
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name, text in SMALL.items():
        with (folder / name).open('a') as file:
            file.write(text)
    generator = np.random.default_rng(0)
    for name in ('cat', 'dog'):
        (folder / 'photos' / name).mkdir(parents=True)
        for index in range(5):
            image = generator.integers(0, 256, (40, 50, 3), np.uint8)
            cv2.imwrite(str(folder / 'photos' / name / f'{index}.png'), image)
    weights = folder / '.cache/torch/hub/checkpoints'
    weights.mkdir(parents=True)
    name = Path(torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url).name
    torch.save(torchvision.models.resnet18().state_dict(), weights / name)
    put_in_hub(folder / 'hub', 'swin_tiny_patch4_window7_224.ms_in1k')
    return folder


def run_block(block, folder, start=('bash', '-euo', 'pipefail', '-c')):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH=str(folder), CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    env |= dict(TORCH_HOME=str(folder / '.cache/torch'), HF_HUB_CACHE=str(folder / 'hub'), HF_HUB_OFFLINE='1')
    env['COLUMNS'] = '200'
    command = [*start, block]
    result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def block_with(words):
    (block,) = (block for block in BLOCKS['bash'] if words in block)
    return block


@pytest.mark.slow
def test_the_quick_start_ends_in_a_table_and_a_figure(clone):
    output = run_block('bash tools/quickstart.sh', clone)
    assert all(name in output for name in ('resnet18_digits', f'{QUICK} ', 'images/s', 'Time of each step'))
    height, width = cv2.imread(str(clone / f'work_dirs/{QUICK}/tokens.png')).shape[:2]
    assert width > height > 300


def test_a_photo_is_predicted_with_public_weights(clone):
    """Random weights stand for those that timm fetches."""
    output = run_block(block_with('china.jpg'), clone)
    assert re.search(r'docs/figures/china.jpg +│? *\|? *[a-z][\w ,\'-]+ \d+\.\d %', output)


@pytest.mark.slow
def test_own_images_are_trained_tested_and_predicted(clone):
    output = run_block(made_small(block_with('data=photos')), clone)
    assert 'No problem found.' in output
    assert re.search(r'torchvision://resnet18: \d+ tensors loaded', output)
    assert (clone / 'work_dirs/vt-resnet18_photos/epoch_1.pth').is_file()
    assert (clone / 'report/report.html').is_file()
    assert (clone / 'predictions.csv').read_text().count('photos/') >= 10


@pytest.mark.slow
def test_the_same_in_python(clone):
    assert 'work_dirs/in-python' in run_block(made_small(BLOCKS['python'][0], ', '), clone, [sys.executable, '-c'])
    assert (clone / 'report-in-python/report.html').is_file()
    assert [*(clone / 'exported').glob('vt-resnet18_photos*.onnx')]


def made_small(block, separator=' '):
    """A block that trains on small images for an epoch."""
    assert 'epochs=30' in block
    return block.replace('epochs=30', separator.join(['epochs=1', 'batch_size=2', 'image_size=64', 'workers=0']))


def test_every_command_is_run_here_or_before():
    words = ('pip install', 'predict', 'data=photos')
    assert len(BLOCKS['bash']) == len(words)
    assert all(word in block for word, block in zip(words, BLOCKS['bash']))
    assert 'tests/run.sh' in README
    assert len(README.splitlines()) <= 120


def test_the_network_is_that_of_the_page():
    _, in_python = BLOCKS['python']
    names = {}
    exec(in_python, names)
    assert names['made'].tokens['backbone.layer4.0.tokenizer'].shape == (2, 16, 1024)
    assert names['made'].attention['backbone.layer4.0.tokenizer'].shape == (2, 1, 16, 14, 14)
    backbone = CLASSIFIERS.build(names['backbone'])
    assert [tuple(each.shape) for each in backbone(torch.rand(1, 3, 64, 64))]
    maps = [torch.rand(1, 256 * 2**level, 16 >> level, 16 >> level) for level in range(4)]
    assert [each.shape[1] for each in SEGMENTORS.build(names['neck'])(maps)] == [256] * 4
