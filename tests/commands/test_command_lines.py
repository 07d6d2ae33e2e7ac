"""The command lines as a user calls them, on the embedded digits and on small files made here."""

import json
import os
import pickle
import subprocess
import sys

import cv2
import numpy as np
import pytest
import torch
from forked_tools import run_forked as run
from tool_runner import ROOT, SMALL_CLASSIFIER, assert_one_line

CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
FEW = [
    'train_cfg.max_epochs=1',
    *SMALL_CLASSIFIER,
]


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
    arguments = [CONFIG, checkpoint, '--work-dir', 'test', '--out', 'metrics.json', '--out-item', 'metrics', '--tta']
    result = run('test.py', *arguments, cwd=tmp_path, options=FEW)
    assert result.returncode == 0, result.stderr
    assert 0 <= json.loads((tmp_path / 'metrics.json').read_text())['accuracy/top1'] <= 100


def test_benchmark_report_and_image(trained, checkpoint):
    result = run('test.py', CONFIG, checkpoint, '--benchmark', cwd=trained, options=FEW)
    assert result.returncode == 0, result.stderr
    record = json.loads((trained / 'work_dirs/vt-resnet18_digits.benchmark.json').read_text())
    assert record['image_shape'] == [3, 64, 64]
    assert record['batch_size'] == 32
    assert record['flops'] > 1e8
    assert 2.7e6 < record['parameters'] < 3.5e6
    assert 0 < record['latency_median'] <= record['latency_95']
    assert record['peak_memory'] > 4 * record['parameters']
    assert 'images/s at batch 32' in result.stdout
    result = run('analysis/report.py', 'runs', 'work_dirs/vt-resnet18_digits', cwd=trained)
    assert result.returncode == 0, result.stderr
    assert 'vt-resnet18_digits' in result.stdout
    assert 'Running' not in result.stderr  # it reads data alone
    image = trained / 'tokens.png'
    small_config = trained / 'small.py'
    small_config.write_text(
        f'_base_ = {str(CONFIG)!r}\nmodel = dict(backbone=dict(num_tokens=4, token_channels=64),'
        'head=dict(in_channels=64))\n'
    )
    result = run('analysis/show_tokens.py', small_config, checkpoint, '--out', image, '--images', '3', cwd=trained)
    assert result.returncode == 0, result.stderr
    height, width = cv2.imread(str(image)).shape[:2]
    assert width > height > 300


def test_models_side_by_side(tmp_path):
    twin = ROOT / 'configs/baselines/resnet18_digits.py'
    arguments = [twin, CONFIG, 'torchvision:resnet18', '--sizes', '64x32', '64', '--batch-sizes', '1', '2']
    result = run('benchmark.py', *arguments, '--rounds', '3', '--out', 'b.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'b.json').read_text())
    measured = [(entry['batch_size'], *entry['size'], entry['kind'], entry['model']) for entry in record['results']]
    names = ['resnet18_digits', 'vt-resnet18_digits', 'torchvision:resnet18']
    runs = [(n, *size, kind) for n in (1, 2) for size in ((64, 32), (64, 64)) for kind in ('inference', 'training')]
    assert measured == [(*run, name) for run in runs for name in names]
    assert all(len(entry['seconds']) == 3 for entry in record['results'])
    assert record['versions']['torch']
    assert 'Inference: batch 2, 64x32, float32' in result.stdout


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ([CONFIG, '--sizes', '64x'], '--sizes 64x is not a size: write 224 or 800x1216'),
        ([CONFIG, '--devices', 'cuda'], "device 'cuda' cannot be used"),
        ([CONFIG, '--devices', 'cpu', '--dtypes', 'tf32'], '--dtypes tf32: cpu has no TensorFloat-32; give float32'),
        ([CONFIG, CONFIG], 'two of the models have the same name'),
        (['torchvision:resnet19'], 'torchvision:resnet19: Unknown model'),
    ],
)
def test_what_a_benchmark_cannot_measure_is_one_line(arguments, message, tmp_path):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES='')
    assert_one_line(run('benchmark.py', *arguments, cwd=tmp_path, env=env), message)


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


@pytest.fixture(scope='module')
def image_folder(tmp_path_factory):
    root = tmp_path_factory.mktemp('my images')
    generator = np.random.default_rng(0)
    for split in ('train', 'val'):
        for label in ('cat', 'dog', 'owl'):
            (root / split / label).mkdir(parents=True)
            for index in range(4):
                image = generator.integers(0, 256, (40, 50, 3), dtype=np.uint8)
                cv2.imwrite(str(root / split / label / f'{index}.png'), image)
    return root


FOLDER_CONFIG = ROOT / 'configs/vt_resnet/vt-resnet18_1xb32-90e_image-folder.py'


def folder_options(root):
    options = ['train_cfg.max_epochs=1', 'train_dataloader.batch_size=6', 'model.head.num_classes=3']
    options += [f'{split}_dataloader.num_workers=0' for split in ('train', 'val', 'test')]
    return [*options, f'data_root={root}']


def test_an_image_folder_trains(image_folder, tmp_path):
    result = run('train.py', FOLDER_CONFIG, cwd=tmp_path, options=folder_options(image_folder))
    assert result.returncode == 0, result.stderr
    assert 'accuracy/top1' in result.stdout


@pytest.mark.parametrize(
    ('option', 'message'),
    [
        ('model.backbone.type=vt.VTResNt', "there is no type 'vt.VTResNt'; did you mean vt.VTResNet"),
        ('optim_wrapper.optimizer.type=AdamWW', "there is no type 'AdamWW'; did you mean AdamW"),
        ('train_dataloader.dataset.type=vt.Digit', "there is no type 'vt.Digit'; did you mean vt.Digits or"),
        ('model.head.num_classes=7', 'model.head has num_classes=7, but the Digits data set has 10 classes'),
        ('model.backbone.groups=3', 'FilterTokenizer: in_channels=256 is not divisible by groups=3'),
        (
            'model.backbone.relation.num_heads=5',
            'TokenTransformer: token_channels=64 is not divisible by num_heads=5',
        ),
        ('train_dataloader.dataset.pipeline.0.scale=20', '28x28 pixels is too small'),
    ],
)
def test_a_wrong_setting_is_one_line(option, message, tmp_path):
    options = [*FEW, option]
    if 'scale' in option:
        options.append('train_dataloader.dataset.pipeline.2.crop_size=28')
    assert_one_line(run('train.py', CONFIG, cwd=tmp_path, options=options), message)


@pytest.mark.parametrize(
    ('tool', 'arguments', 'message'),
    [
        ('train.py', ['nowhere.py'], 'there is no config nowhere.py'),
        ('test.py', [CONFIG, 'nowhere.pth'], 'there is no checkpoint nowhere.pth'),
        ('train.py', [CONFIG, '--resume', 'nowhere.pth'], 'there is no checkpoint to resume from nowhere.pth'),
        ('test.py', [CONFIG, 'any.pth', '--out-item', 'metrics'], '--out-item metrics needs --out FILE'),
        ('test.py', [CONFIG, 'any.pth', '--heat-maps'], '--heat-maps needs --report FOLDER'),
        ('analysis/report.py', ['runs', 'work_dirs/none'], 'there is no work_dirs/none/training.json'),
        ('analysis/show_tokens.py', [CONFIG, 'nowhere.pth'], 'there is no checkpoint nowhere.pth'),
        ('benchmark.py', ['nowhere.py'], 'there is no config nowhere.py'),
    ],
)
def test_a_missing_file_is_one_line(tool, arguments, message, tmp_path):
    assert_one_line(run(tool, *arguments, cwd=tmp_path), message)


def test_missing_and_empty_data_are_one_line(tmp_path):
    options = ['train_dataloader.num_workers=0']
    result = run('train.py', ROOT / 'configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py', cwd=tmp_path, options=options)
    assert_one_line(result, 'there is no data/imagenet: put it there, or correct its path')
    result = run('train.py', ROOT / 'configs/vt_resnet/vt-resnet18_1xb128-90e_cifar10.py', cwd=tmp_path)
    assert_one_line(result, 'there is no data/cifar10: put it there, or correct its path')
    (tmp_path / 'empty folder/train/cat').mkdir(parents=True)
    result = run('train.py', FOLDER_CONFIG, cwd=tmp_path, options=folder_options(tmp_path / 'empty folder'))
    assert_one_line(result, 'Found 0 files in subfolders of')


def test_traceback_is_shown_on_request(tmp_path):
    result = run('train.py', 'nowhere.py', '--traceback', cwd=tmp_path)
    assert result.returncode == 1
    assert 'Traceback' in result.stderr
