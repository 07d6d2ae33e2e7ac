"""``image_size`` of a config: pipelines and model follow one number."""

import pytest
import torch
from mmengine.config import Config

from vt import apis
from vt.engine.config.parts import steps_in
from vt.engine.config.steps import Run, apply_image_size, read_config
from vt.errors import UserError


def read(name, side):
    return read_config(str(apis.find_config(name)), dict(image_size=side))


def sides(cfg, loader):
    steps = steps_in(cfg[loader].dataset.pipeline)
    found = [value for step in steps for value in map(step.get, ('scale', 'crop_size', 'size')) if value]
    return [tuple(value) if isinstance(value, list) else value for value in found]


@pytest.mark.parametrize(
    ('name', 'side', 'train', 'test'),
    [
        ('vt-resnet18_1xb32-90e_image-folder', 112, [112], [128, 112]),
        ('vt-dinov2-small_1xb32-30e_image-folder', 448, [448], [496, 448]),
        ('deit-small_digits', 48, [48, 48], [48]),
        ('deit-small_16xb64-300e_in1k', 224, [224], [256, 224]),
    ],
)
def test_sizes_of_pipelines_keep_their_ratios(name, side, train, test):
    cfg = read(name, side)
    assert sides(cfg, 'train_dataloader') == train
    assert sides(cfg, 'val_dataloader') == sides(cfg, 'test_dataloader') == test


def test_adapters_test_time_augmentation_and_limits_follow():
    steps = [dict(type='RandomChoiceResize', scales=[256, 512], max_size=2048), dict(type='RandomCrop', crop_size=512)]
    frozen = dict(type='mmpretrain.VisionTransformer', img_size=512)
    model = dict(type='ImageClassifier', backbone=dict(type='vt.LoRAModel', module=frozen))
    cfg = Config(dict(model=model, image_size=128, tta_pipeline=[dict(type='Resize', scale=512)]))
    cfg.train_dataloader = dict(dataset=dict(type='CustomDataset', pipeline=steps))
    apply_image_size(Run(cfg))
    assert cfg.model.backbone.module.img_size == 128
    assert cfg.tta_pipeline[0].scale == 128
    first, _ = cfg.train_dataloader.dataset.pipeline
    assert (first.scales, first.max_size) == ([64, 128], 512)


SEGMENTOR = """
crop = (512, 512)
data_preprocessor = dict(type='SegDataPreProcessor', size=crop, test_cfg=dict(size=crop, size_divisor=32))
model = dict(
    type='EncoderDecoder', data_preprocessor=data_preprocessor, backbone=dict(type='mmseg.VisionTransformer'),
    test_cfg=dict(mode='slide', crop_size=crop, stride=(341, 341)),
)
default_scope = 'mmseg'
steps = [
    dict(type='RandomChoiceResize', scales=[(1024, 512), (2048, 1024)]),
    dict(type='RandomCrop', crop_size=crop, cat_max_ratio=0.75),
]
train_dataloader = dict(dataset=dict(type='ADE20KDataset', pipeline=steps))
test_steps = [dict(type='Resize', scale=(2048, 512), keep_ratio=True)]
test_dataloader = dict(dataset=dict(type='ADE20KDataset', pipeline=test_steps))
image_size = 256
"""


def test_segmentation_by_crops_follows_too(tmp_path):
    (tmp_path / 'a.py').write_text(SEGMENTOR)
    cfg = read_config(str(tmp_path / 'a.py'))
    resize, crop = cfg.train_dataloader.dataset.pipeline
    assert (resize.scales, crop.crop_size, crop.cat_max_ratio) == ([(512, 256), (1024, 512)], (256, 256), 0.75)
    assert cfg.test_dataloader.dataset.pipeline[0].scale == (1024, 256)
    preprocessor = cfg.model.data_preprocessor
    assert (preprocessor.size, preprocessor.test_cfg) == ((256, 256), dict(size=(256, 256), size_divisor=32))
    assert (cfg.model.test_cfg.crop_size, cfg.model.test_cfg.stride) == ((256, 256), (170, 170))
    assert cfg.model.backbone.img_size == 256
    cfg.dump(tmp_path / 'again.py')  # as a run leaves its config
    assert read_config(str(tmp_path / 'again.py')).to_dict() == cfg.to_dict()


@pytest.mark.parametrize(('name', 'key'), [('tnt-small_digits', 'img_size'), ('swin-tiny_digits', 'image_size')])
def test_models_follow(name, key):
    cfg = read(name, 40)
    assert cfg.model.backbone[key] == 40
    model = apis.get_model(cfg).eval()
    with torch.no_grad():
        assert model(torch.zeros(1, 3, 40, 40), mode='tensor').shape == (1, 10)


@pytest.mark.parametrize(('step', 'words'), [("dict(type='Resize', scale=(64, 32)), ", r'\(64, 32\)'), ('', 'None')])
def test_images_that_are_no_squares_are_refused(step, words, tmp_path):
    base = str(apis.find_config('vt-resnet18_1xb32-90e_image-folder'))
    steps = f"[{step}dict(type='PackInputs')]"
    text = f'_base_ = {base!r}\nimage_size = 96\ntrain_dataloader = dict(dataset=dict(pipeline={steps}))\n'
    (tmp_path / 'a.py').write_text(text)
    with pytest.raises(UserError, match=f'training images are resized to {words}, not square'):
        read_config(str(tmp_path / 'a.py'))
