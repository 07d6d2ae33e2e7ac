"""Transforms of torchvision in MMPretrain's pipelines."""

import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from projects.speed.torchvision_step import TorchVision
from vt.engine.config.steps import read_config
from vt.errors import UserError
from vt.files import ROOT
from vt.registry import TRANSFORMS


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(256, size=(40, 60, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('RandomResizedCrop', dict(size=32, interpolation='bicubic')),
        ('RandAugment', dict(num_ops=2, magnitude=9)),
        ('ColorJitter', dict(brightness=0.4, saturation=0.4, hue=0.1)),
        ('RandomErasing', dict(p=1.0)),
        ('ToDtype', dict(dtype=torch.float32, scale=True)),
    ],
)
def test_it_is_torchvisions_on_red_green_blue(image, name, options):
    step = TRANSFORMS.build(dict(type='vt.TorchVision', name=name, **options))
    direct = {key: v2.InterpolationMode(value) if key == 'interpolation' else value for key, value in options.items()}
    for seed in range(5):
        torch.manual_seed(seed)
        results = step(dict(img=image, gt_label=3))
        torch.manual_seed(seed)
        expected = getattr(v2, name)(**direct)(torch.from_numpy(image[..., ::-1].copy()).permute(2, 0, 1))
        assert np.array_equal(results['img'][..., ::-1], expected.permute(1, 2, 0).numpy())
        assert results['img'].dtype == expected.numpy().dtype
        assert results['img'].flags.c_contiguous
        assert results['img_shape'] == tuple(expected.shape[1:])
        assert results['gt_label'] == 3


def test_its_size_follows_the_size_of_images(tmp_path):
    config = tmp_path / 'config.py'
    base = str(ROOT / 'configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py')
    config.write_text(
        f'_base_ = {base!r}\n'
        "crop = dict(type='vt.TorchVision', name='RandomResizedCrop', size=224)\n"
        'load, _, *rest = _base_.train_pipeline\n'
        'train_dataloader = dict(dataset=dict(pipeline=[load, crop, *rest]))\n'
    )
    _, crop, *_ = read_config(str(config), dict(image_size=96)).train_dataloader.dataset.pipeline
    assert crop['size'] == 96
    results = TRANSFORMS.build(dict(crop))(dict(img=np.zeros((200, 300, 3), np.uint8)))
    assert results['img'].shape == (96, 96, 3)


def test_masks_are_refused(image):
    for key in ('gt_seg_map', 'seg_map_path'):  # loaded, or to be loaded by a later step
        with pytest.raises(UserError, match=f'changes only the image, and the data have {key}'):
            TorchVision('RandomHorizontalFlip')({'img': image, key: image[..., 0]})
