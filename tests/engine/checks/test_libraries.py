"""The libraries' own configs train by VT's tools as they are: no check raises a false alarm on fitting data."""

import numpy as np
import pytest
from forked_tools import run_forked
from PIL import Image

CLASSIFIERS = [
    'resnet/resnet18_8xb32_in1k',
    'mobilenet_v2/mobilenet-v2_8xb32_in1k',
    'shufflenet_v2/shufflenet-v2-1x_16xb64_in1k',
    'deit/deit-tiny_4xb256_in1k',  # Mixup, rules of paramwise_cfg
    'mobilevit/mobilevit-xxsmall_8xb128_in1k',
    'edgenext/edgenext-xxsmall_8xb256_in1k',  # averaged weights
]
SEGMENTORS = [
    'fastscnn/fast_scnn_8xb4-160k_cityscapes-512x1024',
    'cgnet/cgnet_fcn_4xb8-60k_cityscapes-512x1024',  # weights of classes
    'erfnet/erfnet_fcn_4xb4-160k_cityscapes-512x1024',
    'segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512',  # rules of paramwise_cfg
    'sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512',
    'unet/unet-s5-d16_fcn_4xb4-40k_drive-64x64',
]
RANDOM = np.random.default_rng(0)


def write(path, size, classes=None):
    """An image of noise, or a mask of so many classes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (*size, 3) if classes is None else size
    Image.fromarray(RANDOM.integers(0, classes or 256, shape, dtype=np.uint8)).save(path)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """ImageNet, ADE20K, Cityscapes and DRIVE, of a few small images."""
    folder = tmp_path_factory.mktemp('libraries')
    data = folder / 'data'
    for split in ('train', 'val'):
        for label in range(1000):
            write(data / f'imagenet/{split}/n{label:08}/{split}.JPEG', (32, 32))
        for name in 'abcd':
            cityscapes = data / 'cityscapes', f'{split}/aachen/{name}_{split}'
            write(cityscapes[0] / f'leftImg8bit/{cityscapes[1]}_leftImg8bit.png', (64, 128))
            write(cityscapes[0] / f'gtFine/{cityscapes[1]}_gtFine_labelTrainIds.png', (64, 128), 19)
            long = dict(train='training', val='validation')[split]
            write(data / f'ade/ADEChallengeData2016/images/{long}/{name}_{split}.jpg', (64, 64))
            write(data / f'ade/ADEChallengeData2016/annotations/{long}/{name}_{split}.png', (64, 64), 151)
            write(data / f'DRIVE/images/{long}/{name}_{split}.png', (64, 64))
            write(data / f'DRIVE/annotations/{long}/{name}_{split}_manual1.png', (64, 64), 2)
    return folder


def train(folder, library, config, options):
    (folder / 'config.py').write_text(f"_base_ = '{library}::{config}.py'\n")
    few = ['param_scheduler=None', 'train_dataloader.batch_size=2', 'default_hooks.checkpoint.interval=1000']
    few += [
        f'{split}_dataloader.{key}'
        for split in ('train', 'val')
        for key in ('num_workers=0', 'persistent_workers=False')
    ]
    result = run_forked('train.py', 'config.py', '--work-dir', config, cwd=folder, options=[*few, *options])
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize('config', CLASSIFIERS)
def test_mmpretrains_own(config, folder):
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=4', 'val_dataloader.dataset.indices=4']
    train(folder, 'mmpretrain', config, [*options, 'val_dataloader.batch_size=2'])


@pytest.mark.slow
@pytest.mark.parametrize('config', SEGMENTORS)
def test_mmsegmentations_own(config, folder):
    options = ['train_cfg.max_iters=2', 'train_cfg.val_interval=2', 'model.pretrained=None']
    train(folder, 'mmseg', config, [*options, 'model.backbone.init_cfg=None'])
