"""The command lines as a user calls them, on the embedded digits and on small files made here."""

import json
import os
import pickle
import subprocess
import sys

import pytest
import torch
from forked_tools import run_forked as run
from tool_runner import ROOT, SMALL_CLASSIFIER

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
FEW = ['train_cfg.max_epochs=1', *SMALL_CLASSIFIER]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A folder with a trained work directory; its path holds a space."""
    folder = tmp_path_factory.mktemp('a run')
    result = run('train.py', CONFIG, cwd=folder, options=FEW)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope='module')
def checkpoint(trained):
    return trained / 'work_dirs/vt-resnet18_digits/epoch_1.pth'


def test_training_leaves_its_time_and_a_whole_checkpoint(trained, checkpoint):
    summary = json.loads((checkpoint.parent / 'training.json').read_text())
    assert summary['seconds'] > 0
    weights = torch.load(checkpoint, weights_only=False)['state_dict']
    assert weights['backbone.layer4.0.tokenizer.weight'].shape == (4, 256)


def test_resume_goes_on_and_keeps_the_time(trained, checkpoint, tmp_path):
    before = json.loads((checkpoint.parent / 'training.json').read_text())['seconds']
    options = [*FEW, 'train_cfg.max_epochs=2']
    result = run(
        'train.py', CONFIG, '--resume', checkpoint, '--work-dir', tmp_path / 'on', cwd=tmp_path, options=options
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'on/epoch_2.pth').exists()
    assert 'Epoch(train) [2]' in result.stdout
    assert 'Epoch(train) [1]' not in result.stdout
    assert json.loads((tmp_path / 'on/training.json').read_text())['seconds'] > before


def test_amp_no_validate_and_auto_scale_lr(tmp_path):
    arguments = [CONFIG, '--amp', '--no-validate', '--auto-scale-lr', '--work-dir', 'out']
    options = [*FEW, 'train_dataloader.batch_size=8', 'optim_wrapper.accumulative_counts=2']
    result = run('train.py', *arguments, cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert '--amp bfloat16' in result.stdout or torch.cuda.is_available()
    assert 'Epoch(val)' not in result.stdout
    assert 'lr: 5.0000e-04' in result.stdout


def test_test_writes_predictions_metrics_and_images(checkpoint, tmp_path):
    arguments = [CONFIG, checkpoint, '--work-dir', 'test', '--out', 'predictions.pkl', '--show-dir', 'images']
    result = run('test.py', *arguments, cwd=tmp_path, options=FEW)
    assert result.returncode == 0, result.stderr
    predictions = pickle.loads((tmp_path / 'predictions.pkl').read_bytes())
    assert len(predictions) == 32
    assert len(list((tmp_path / 'images').rglob('*.png'))) == 32
    arguments = [CONFIG, checkpoint, '--work-dir', 'test', '--out', 'metrics.json', '--tta']
    result = run('test.py', *arguments, cwd=tmp_path, options=FEW)
    assert result.returncode == 0, result.stderr
    assert 0 <= json.loads((tmp_path / 'metrics.json').read_text())['accuracy/top1'] <= 100


def test_benchmark_and_report(trained, checkpoint):
    result = run('test.py', CONFIG, checkpoint, '--benchmark', cwd=trained, options=FEW)
    assert result.returncode == 0, result.stderr
    record = json.loads((trained / 'work_dirs/vt-resnet18_digits.benchmark.json').read_text())
    assert record['image_shape'] == [3, 64, 64]
    assert record['batch_size'] == 32
    assert record['flops'] > 1e8
    assert 2.7e6 < record['parameters'] < 3.5e6
    assert 0 < record['latency_median'] <= record['latency_95']
    assert 'images/s at batch 32' in result.stdout
    result = run('analysis/report.py', 'runs', 'work_dirs/vt-resnet18_digits', cwd=trained)
    assert result.returncode == 0, result.stderr
    assert 'vt-resnet18_digits' in result.stdout
    assert 'Running' not in result.stderr  # it reads data alone


def test_models_side_by_side(tmp_path):
    twin = ROOT / 'configs/baselines/resnet18_digits.py'
    arguments = [twin, CONFIG, '--sizes', '64x32', '64', '--batch-sizes', '1', '2']
    result = run('benchmark.py', *arguments, '--rounds', '3', '--out', 'b.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'b.json').read_text())
    measured = [(entry['batch_size'], *entry['size'], entry['kind'], entry['model']) for entry in record['results']]
    names = ['resnet18_digits', 'vt-resnet18_digits']
    runs = [(n, *size, kind) for n in (1, 2) for size in ((64, 32), (64, 64)) for kind in ('inference', 'training')]
    assert measured == [(*run, name) for run in runs for name in names]
    assert all(len(entry['seconds']) == 3 for entry in record['results'])
    assert record['versions']['torch']
    assert 'Inference: batch 2, 64x32, float32' in result.stdout


@pytest.mark.slow
def test_two_processes_on_the_cpu(checkpoint, tmp_path):
    env = dict(os.environ, PYTHON=sys.executable, CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    options = [*FEW, 'model.backbone.norm_cfg.type=SyncBN']
    for script, arguments in [('dist_train.sh', [CONFIG, '2']), ('dist_test.sh', [CONFIG, checkpoint, '2'])]:
        command = ['bash', ROOT / 'tools' / script, *arguments, '--work-dir', 'two', '--cfg-options', *options]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
        assert result.returncode == 0, result.stderr
        assert 'accuracy/top1' in result.stdout
        assert 'channels_last=True' in result.stdout
    assert (tmp_path / 'two/epoch_1.pth').exists()
