"""Transforms of torchvision in MMPretrain's pipelines."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from torchvision.transforms import v2

import vt
from vt.engine.prepare import ROOT, enter_image_size, read_config
from vt.errors import UserError
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


@pytest.mark.parametrize('shape', [(40, 60), (40, 60, 1), (40, 60, 4)])
def test_other_numbers_of_channels(shape):
    image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    turned = vt.TorchVision('RandomHorizontalFlip', p=1.0)(dict(img=image))['img']
    assert np.array_equal(turned, image.reshape(40, 60, -1)[:, ::-1])


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


def test_what_it_does_not_have_is_named(image):
    with pytest.raises(UserError, match="has no transform 'RandomResizeCrop'"):
        vt.TorchVision('RandomResizeCrop', size=3)
    with pytest.raises(UserError, match="has no transform 'InterpolationMode'"):
        vt.TorchVision('InterpolationMode')
    with pytest.raises(UserError, match='CenterCrop has no argument crop_size; it has: size'):
        vt.TorchVision('CenterCrop', crop_size=3)
    with pytest.raises(UserError, match=r"interpolation='cubic' must be one of nearest, .*bicubic"):
        vt.TorchVision('Resize', size=3, interpolation='cubic')
    with pytest.raises(UserError, match=r"RandomResizedCrop: .* missing 1 required positional argument: 'size'"):
        vt.TorchVision('RandomResizedCrop')
    with pytest.raises(UserError, match=r'RandomHorizontalFlip: .*interval'):
        vt.TorchVision('RandomHorizontalFlip', p=7)
    for name in ('FiveCrop', 'ToPILImage'):
        with pytest.raises(UserError, match=f'{name}.* of an image, not an image'):
            vt.TorchVision(name, **(dict(size=9) if name == 'FiveCrop' else {}))(dict(img=image))
    for key in ('gt_seg_map', 'seg_map_path'):  # loaded, or to be loaded by a later step
        with pytest.raises(UserError, match=f'changes only the image, and the data have {key}'):
            vt.TorchVision('RandomHorizontalFlip')({'img': image, key: image[..., 0]})


@pytest.mark.parametrize('channels', [1, 3, 4])
def test_a_data_sets_own_image_is_not_written_into(channels):
    image = np.ones((40, 60, channels), np.float32)
    changed = vt.TorchVision('Normalize', mean=[1.0] * channels, std=[1.0] * channels, inplace=True)(dict(img=image))
    assert (changed['img'] == 0).all()
    assert (image == 1).all()


def test_both_sizes_of_a_jitter_follow_the_size_of_images():
    step = dict(type='vt.TorchVision', name='ScaleJitter', target_size=(64, 64))
    cfg = Config(dict(image_size=32, model=dict(), train_dataloader=dict(dataset=dict(pipeline=[step]))))
    enter_image_size(cfg)
    assert cfg.train_dataloader.dataset.pipeline[0].target_size == (32, 32)
