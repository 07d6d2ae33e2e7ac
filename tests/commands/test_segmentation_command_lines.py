"""The command lines on segmentation: the embedded scenes, and small files made here."""

import json

import cv2
import numpy as np
import pytest
import torch
from forked_tools import run_forked as run
from PIL import Image
from tool_runner import ROOT

CONFIG = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
FEW = [
    'train_cfg.max_iters=3',
    'train_cfg.val_interval=3',
    'train_dataloader.batch_size=2',
    'val_dataloader.dataset.indices=3',
    'val_dataloader.batch_size=2',
    'test_dataloader.dataset.indices=3',
    'test_dataloader.batch_size=2',
    'model.neck.token_channels=64',
    'param_scheduler.0.end=2',
]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A folder with a trained work directory; its path holds a space."""
    folder = tmp_path_factory.mktemp('a segmentation')
    result = run('train.py', CONFIG, cwd=folder, options=FEW)
    assert result.returncode == 0, result.stderr
    assert 'mIoU' in result.stdout
    return folder


@pytest.fixture(scope='module')
def checkpoint(trained):
    return trained / 'work_dirs/vt-fpn_r18_digit-scenes/iter_3.pth'


def test_training_leaves_its_time_and_the_best_checkpoint(trained, checkpoint):
    record = json.loads((checkpoint.parent / 'training.json').read_text())
    assert 0 < record['data_seconds'] < record['seconds']
    assert (record['iterations'], record['batch_size']) == (3, 2)
    assert list(checkpoint.parent.glob('best_mIoU_iter_3.pth'))
    weights = torch.load(checkpoint, weights_only=False)['state_dict']
    assert weights['neck.tokenizers.0.weight'].shape == (8, 128)


def test_test_writes_predicted_maps_overlays_and_the_cost(trained, checkpoint):
    arguments = [CONFIG, checkpoint, '--benchmark', '--out', 'maps', '--show-dir', 'images']
    result = run('test.py', *arguments, cwd=trained, options=FEW)
    assert result.returncode == 0, result.stderr
    names = ['test_000000.png', 'test_000001.png', 'test_000002.png']
    assert sorted(path.name for path in (trained / 'maps').iterdir()) == names
    assert np.asarray(Image.open(trained / 'maps' / names[0])).max() < 11
    assert sorted(path.name for path in (trained / 'images').iterdir()) == names
    assert cv2.imread(str(trained / 'images' / names[0])).shape == (128, 256, 3)  # labels beside the prediction
    record = json.loads((trained / 'work_dirs/vt-fpn_r18_digit-scenes.benchmark.json').read_text())
    assert record['image_shape'] == [3, 128, 128]
    result = run('analysis/report.py', 'runs', 'work_dirs/vt-fpn_r18_digit-scenes', cwd=trained)
    assert result.returncode == 0, result.stderr
    assert f'{record["metrics"]["mIoU"]:.2f} mIoU' in result.stdout


def test_test_time_augmentation_writes_maps_too(trained, checkpoint):
    result = run('test.py', CONFIG, checkpoint, '--tta', '--amp', '--out', 'tta', cwd=trained, options=FEW)

    assert result.returncode == 0, result.stderr
    assert len(list((trained / 'tta').glob('*.png'))) == 3
