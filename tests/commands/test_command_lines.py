"""The command lines of runs as a user calls them, on the embedded digits and scenes."""

import json
import os
import pickle
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch
from forked_tools import run_forked
from PIL import Image
from tool_runner import ROOT, SMALL_CLASSIFIER, call, succeed

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18-half_digits.py'
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER]
SCENES = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
FEW_SCENES = [
    'train_cfg.max_iters=2',
    'train_cfg.val_interval=2',
    'train_dataloader.batch_size=2',
    'val_dataloader.dataset.indices=2',
    'test_dataloader.dataset.indices=3',
    'test_dataloader.batch_size=2',
    'model.neck.token_channels=64',
    'param_scheduler.0.end=2',
]


@pytest.fixture(scope='module')
def segmentor(tmp_path_factory):
    """The work directory of a trained segmentor; its path holds a space."""
    folder = tmp_path_factory.mktemp('a segmentation')
    result = succeed(run_forked('train.py', SCENES, cwd=folder, options=FEW_SCENES))
    assert 'mIoU' in result.stdout
    return folder / 'work_dirs/vt-fpn_r18_digit-scenes'


def test_a_training_of_iterations_leaves_its_time_and_the_best_checkpoint(segmentor):
    record = json.loads((segmentor / 'training.json').read_text())
    assert 0 < record['data_seconds'] < record['seconds']
    assert (record['iterations'], record['batch_size']) == (2, 2)
    assert list(segmentor.glob('best_mIoU_iter_2.pth'))
    weights = torch.load(segmentor / 'iter_2.pth', weights_only=False)['state_dict']
    assert weights['neck.tokenizers.0.weight'].shape == (8, 128)


def test_a_training_is_resumed_benchmarked_and_reported(trained_digits, tmp_path):
    before = json.loads((trained_digits.parent / 'training.json').read_text())['seconds']
    assert before > 0
    config = trained_digits.parents[2] / 'config.py'
    arguments = [config, '--resume', trained_digits, '--work-dir', 'work_dirs/config']
    result = succeed(call('train.py', *arguments, cwd=tmp_path, options=['train_cfg.max_epochs=2']))
    assert 'Epoch(train) [2]' in result.stdout
    assert 'Epoch(train) [1]' not in result.stdout
    assert json.loads((tmp_path / 'work_dirs/config/training.json').read_text())['seconds'] > before
    result = succeed(call('test.py', config, 'work_dirs/config/epoch_2.pth', '--benchmark', cwd=tmp_path))
    record = json.loads((tmp_path / 'work_dirs/config.benchmark.json').read_text())
    assert (record['image_shape'], record['batch_size']) == ([3, 32, 32], 32)
    assert record['flops'] > 1e7
    assert 6e5 < record['parameters'] < 1e6
    assert 0 < record['latency_median'] <= record['latency_95']
    assert 'images/s at batch 32' in result.stdout
    result = succeed(call('analysis/report.py', 'runs', 'work_dirs/config', cwd=tmp_path))
    assert f'{record["metrics"]["accuracy/top1"]:.2f}' in result.stdout
    assert 'Running' not in result.stderr  # it reads data alone


def test_amp_no_validate_and_auto_scale_lr(tmp_path):
    arguments = [CONFIG, '--amp', '--no-validate', '--auto-scale-lr', '--work-dir', 'out']
    options = [*FEW, 'train_dataloader.batch_size=8', 'optim_wrapper.accumulative_counts=2']
    result = succeed(call('train.py', *arguments, cwd=tmp_path, options=options))
    assert '--amp bfloat16' in result.stdout or torch.cuda.is_available()
    assert 'Epoch(val)' not in result.stdout
    assert 'lr: 5.0000e-04' in result.stdout


def test_a_test_writes_predictions_metrics_and_images(trained_digits, tmp_path):
    model = [trained_digits.parents[2] / 'config.py', trained_digits, '--work-dir', 'test']
    few = ['test_dataloader.dataset.indices=5']
    succeed(call('test.py', *model, '--out', 'predictions.pkl', '--show-dir', 'images', cwd=tmp_path, options=few))
    assert len(pickle.loads((tmp_path / 'predictions.pkl').read_bytes())) == 5
    assert len(list((tmp_path / 'images').rglob('*.png'))) == 5
    succeed(call('test.py', *model, '--out', 'metrics.json', '--tta', cwd=tmp_path))
    assert 0 <= json.loads((tmp_path / 'metrics.json').read_text())['accuracy/top1'] <= 100


def test_a_test_writes_predicted_maps_and_overlays(segmentor):
    folder = segmentor.parents[1]
    arguments = ['test.py', SCENES, segmentor / 'iter_2.pth']
    succeed(call(*arguments, '--out', 'maps', '--show-dir', 'images', cwd=folder, options=FEW_SCENES))
    names = ['test_000000.png', 'test_000001.png', 'test_000002.png']
    for kind in ('maps', 'images'):
        assert sorted(path.name for path in (folder / kind).iterdir()) == names
    assert np.asarray(Image.open(folder / 'maps' / names[0])).max() < 11
    assert cv2.imread(str(folder / 'images' / names[0])).shape == (128, 256, 3)  # labels beside the prediction
    result = succeed(call('analysis/report.py', 'runs', segmentor, cwd=folder))
    assert ' mIoU' in result.stdout
    succeed(call(*arguments, '--tta', '--amp', '--out', 'tta', cwd=folder, options=FEW_SCENES))
    assert len(list((folder / 'tta').glob('*.png'))) == 3


def test_models_side_by_side(tmp_path):
    twin = ROOT / 'configs/baselines/resnet18-half_digits.py'
    arguments = [twin, CONFIG, '--sizes', '64x32', '--batch-sizes', '1', '2', '--rounds', '3', '--out', 'b.json']
    result = succeed(call('benchmark.py', *arguments, cwd=tmp_path))
    record = json.loads((tmp_path / 'b.json').read_text())
    measured = [(entry['batch_size'], *entry['size'], entry['kind'], entry['model']) for entry in record['results']]
    runs = [(n, 64, 32, kind) for n in (1, 2) for kind in ('inference', 'training')]
    assert measured == [(*run, name) for run in runs for name in (twin.stem, CONFIG.stem)]
    assert all(len(entry['seconds']) == 3 for entry in record['results'])
    assert record['versions']['torch']
    assert 'Inference: batch 2, 64x32, float32' in result.stdout


@pytest.mark.slow
def test_two_processes_on_the_cpu(trained_digits, tmp_path):
    config = trained_digits.parents[2] / 'config.py'
    env = dict(os.environ, PYTHON=sys.executable, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    for script, arguments in [('dist_train.sh', [config, '2']), ('dist_test.sh', [config, trained_digits, '2'])]:
        command = ['bash', ROOT / 'tools' / script, *arguments, '--work-dir', 'two']
        command += ['--cfg-options', 'model.backbone.norm_cfg.type=SyncBN']
        result = succeed(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env))
        assert 'accuracy/top1' in result.stdout
        assert 'channels_last=True' in result.stdout
    assert (tmp_path / 'two/epoch_1.pth').exists()
