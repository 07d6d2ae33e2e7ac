"""Every config builds in a fresh process, from another working directory, and takes a training step."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIGS = sorted(path for path in (ROOT / 'configs').rglob('*.py') if '_base_' not in path.parts)

# Only mmengine is imported: the config itself has to bring in VT.
STEP = """
import sys, torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
cfg = Config.fromfile(sys.argv[1])
init_default_scope(cfg.default_scope)
from mmpretrain.structures import DataSample
cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)
model = MODELS.build(cfg.model)
model.init_weights()
samples = [DataSample().set_gt_label(index) for index in range(2)]
data = model.data_preprocessor(dict(inputs=torch.zeros(2, 3, 64, 64, dtype=torch.uint8), data_samples=samples), True)
loss = model(**data, mode='loss')['loss']
loss.backward()
assert all(parameter.grad is not None for parameter in model.parameters())
print('loss', loss.item())
"""


@pytest.mark.parametrize('config', CONFIGS, ids=lambda path: path.stem)
def test_config_builds_anywhere_and_takes_a_step(config, tmp_path):
    result = subprocess.run([sys.executable, '-c', STEP, config], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith('loss ')


@pytest.mark.parametrize('name', ['vt_resnet/vt-resnet18_digits', 'baselines/resnet18_digits'])
def test_mmpretrains_own_tool_trains_it(name, tmp_path):
    import mmpretrain

    tool = Path(mmpretrain.__file__).parent / '.mim/tools/train.py'
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=64', 'val_dataloader.dataset.indices=32']
    command = [sys.executable, tool, ROOT / 'configs' / f'{name}.py', '--work-dir', tmp_path / 'run', '--cfg-options']
    result = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'run' / 'epoch_1.pth').exists()


def test_mmpretrains_own_config_takes_the_backbone_by_name(tmp_path):
    """One line of ``custom_imports`` and a type are all that a config of MMPretrain needs."""
    config = tmp_path / 'config.py'
    config.write_text(
        "_base_ = ['mmpretrain::resnet/resnet18_8xb32_in1k.py']\n"
        "custom_imports = dict(imports=['vt'])\n"
        "model = dict(backbone=dict(_delete_=True, type='vt.VTResNet', depth=18),\n"
        "             neck=dict(type='vt.TokenAverage'), head=dict(in_channels=1024))\n"
    )
    result = subprocess.run([sys.executable, '-c', STEP, config], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
