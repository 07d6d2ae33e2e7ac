"""The command lines on segmentation: the embedded scenes, and small files made here."""

import json

import cv2
import numpy as np
import pytest
import torch
from forked_tools import run_forked as run
from PIL import Image
from tool_runner import ROOT, assert_one_line

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


def test_test_writes_predicted_maps_overlays_and_the_necks_cost(trained, checkpoint):
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
    assert 0 < record['neck']['flops'] < record['flops'] / 3
    assert 0 < record['neck']['parameters'] < record['parameters']
    assert 0 < record['neck']['latency_median'] <= record['neck']['latency_95']
    assert 'neck alone' in result.stdout
    result = run('analysis/report.py', 'runs', 'work_dirs/vt-fpn_r18_digit-scenes', cwd=trained)
    assert result.returncode == 0, result.stderr
    assert f'{record["metrics"]["mIoU"]:.2f} mIoU' in result.stdout


def test_test_time_augmentation_writes_maps_too(trained, checkpoint):
    result = run('test.py', CONFIG, checkpoint, '--tta', '--out', 'tta', cwd=trained, options=FEW)
    assert result.returncode == 0, result.stderr
    assert len(list((trained / 'tta').glob('*.png'))) == 3


def test_mirrors_are_refused_where_left_and_right_are_classes(checkpoint, tmp_path):
    config = ROOT / 'configs/vt_fpn/vt-fpn_r50_4xb24-48k_lip-473x473.py'
    assert_one_line(run('test.py', config, checkpoint, '--tta', cwd=tmp_path), 'left and right are classes')


def test_test_time_augmentation_and_metrics(trained, checkpoint):
    arguments = [CONFIG, checkpoint, '--tta', '--amp', '--out', 'metrics.json', '--out-item', 'metrics']
    result = run('test.py', *arguments, cwd=trained, options=FEW)
    assert result.returncode == 0, result.stderr
    assert 0 <= json.loads((trained / 'metrics.json').read_text())['mIoU'] <= 100


def test_image_of_the_tokens(trained, checkpoint):
    config = trained / 'small.py'
    config.write_text(f'_base_ = {str(CONFIG)!r}\nmodel = dict(neck=dict(token_channels=64))\n')
    result = run('analysis/show_tokens.py', config, checkpoint, '--images', '2', cwd=trained)
    assert result.returncode == 0, result.stderr
    assert cv2.imread(str(trained / 'tokens.png')).shape[1] > 300


def test_wrong_labels_are_one_line_before_training(tmp_path):
    for folder, array in [('img', np.zeros((30, 40, 3), np.uint8)), ('ann', np.full((30, 40), 19, np.uint8))]:
        path = tmp_path / folder / ('a_leftImg8bit.png' if folder == 'img' else 'a_gtFine_labelTrainIds.png')
        path.parent.mkdir()
        Image.fromarray(array).save(path)
    config = ROOT / 'configs/vt_fpn/vt-fpn_r50_4xb2-80k_cityscapes-512x1024.py'
    options = ['model.backbone.init_cfg=None']
    for split in ('train', 'val'):
        options += [
            f'{split}_dataloader.dataset.data_root={tmp_path}',
            f'{split}_dataloader.dataset.data_prefix.img_path=img',
            f'{split}_dataloader.dataset.data_prefix.seg_map_path=ann',
        ]
    result = run('train.py', config, cwd=tmp_path, options=options)
    assert_one_line(result, 'ann/a_gtFine_labelTrainIds.png has the label 19, outside the 19 classes')
    assert 'Iter(train)' not in result.stdout
    assert not list(tmp_path.rglob('*.pth'))


@pytest.mark.parametrize(
    ('option', 'message'),
    [
        ('model.decode_head.num_classes=12', 'has num_classes=12, but the DigitScenes data set has 11 classes'),
        ('model.neck.in_channels=[32,64,128]', 'VTFPN: the input has 4 maps, but in_channels has 3'),
        ('train_dataloader.dataset.num_scenes=0', 'the train split is empty'),
    ],
)
def test_a_wrong_setting_is_one_line(option, message, tmp_path):
    assert_one_line(run('train.py', CONFIG, cwd=tmp_path, options=[*FEW, option]), message)


def test_predictions_of_a_segmentor_are_no_pickle(checkpoint, tmp_path):
    result = run('test.py', CONFIG, checkpoint, '--out', 'predictions.pkl', cwd=tmp_path, options=FEW)
    assert_one_line(result, '--out predictions.pkl: predicted maps are written as PNG files to a folder')
