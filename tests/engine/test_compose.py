"""Models by their short names on one's own data: composed configs equal those written by hand, and all train."""

import copy

import mmcv
import numpy as np
import pytest
from tool_runner import ROOT
from video.written_videos import draw, write

import vt
from vt.engine.config.compose import short_models
from vt.engine.config.steps import read_config

# What the data step sets beyond the hand-written configs.
OF_DATA = ('config_name', 'data_root', 'work_dir', 'val_fraction', 'load_from', 'launcher')
WRITTEN = {
    'swin-tiny_fine-tuned.py': ('swin-tiny', 'timm'),
    'resnet18.py': ('resnet18', None),
    'vt-resnet18.py': ('vt-resnet18', None),
    'vt-resnet18_fine-tuned.py': ('vt-resnet18', 'torchvision'),
    'vt-resnet18_several-labels.py': ('vt-resnet18', None),
    'vt-fpn_r18.py': ('vt-fpn_r18', 'torchvision'),
    'vt-fpn_r50.py': ('vt-fpn_r50', 'torchvision'),
}
SEGMENTORS = ('fpn_r18', 'fpn_r50', 'vt-fpn_r50')
SMALL = dict(image_size=64, batch_size=4, workers=0)


@pytest.fixture(scope='module')
def photos(tmp_path_factory):
    """Images of two classes, without splits, in a folder whose path holds a space."""
    folder = tmp_path_factory.mktemp('own photos')
    for index in range(12):
        image = np.random.default_rng(index).integers(0, 256, (72, 80, 3), np.uint8)
        mmcv.imwrite(image, str(folder / f'{"cat" if index % 2 else "dog"}/{index}.png'))
    return folder


@pytest.fixture(scope='module')
def scenes(tmp_path_factory):
    """Images and masks of two classes, with splits."""
    folder = tmp_path_factory.mktemp('scenes')
    (folder / 'classes.txt').write_text('sea\nland\n')
    for index in range(6):
        split = 'val' if index > 3 else 'train'
        random = np.random.default_rng(index)
        mmcv.imwrite(random.integers(0, 256, (64, 64, 3), np.uint8), str(folder / f'images/{split}/{index}.png'))
        mmcv.imwrite(random.integers(0, 2, (64, 64), np.uint8), str(folder / f'masks/{split}/{index}.png'))
    return folder


def plain(cfg):
    """A config without what the data set, and without its data sets but their pipelines."""
    content = copy.deepcopy(cfg.to_dict())
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        dataset = content[name]['dataset']
        while 'dataset' in dataset:
            dataset = dataset['dataset']
        content[name]['dataset'] = dataset['pipeline']
    return {key: value for key, value in content.items() if key not in OF_DATA and not key.endswith('_pipeline')}


@pytest.mark.parametrize('path', WRITTEN)
def test_a_composed_config_is_the_one_written_by_hand(path, photos, scenes, tmp_path):
    name, weights = WRITTEN[path]
    data = scenes if 'fpn' in name else photos
    if 'several-labels' in path:
        data = tmp_path / 'labels.csv'
        rows = [f'{photo},"{photo.parent.name},any"' for photo in sorted(photos.rglob('*.png'))]
        data.write_text('\n'.join(['file,labels', *rows]))
    options = dict(data=str(data)) | (dict(weights=weights) if weights else {})
    composed = plain(read_config(str(short_models()[name]), options))
    written = plain(read_config(str(ROOT / 'tests/engine/written_configs' / path)))
    own = {'extensions', 'crop_size', 'tuned', 'token_side', 'norm_cfg', 'pretrained', 'stages', 'architecture', 'bias'}
    own |= {'attention', 'merging', 'labels'}
    assert {key: composed.get(key) for key in written.keys() - own} == {
        key: written[key] for key in written.keys() - own
    }


def train_two_steps(name, data, folder, monkeypatch, **settings):
    monkeypatch.chdir(folder)
    run = vt.train(name, data=data, **SMALL, **settings)
    assert run.record['iterations'] == 2
    assert all(0 <= score <= 100 for score in run.scores.values())
    assert run.folder.name == f'{name}_{data.name.replace(" ", "-")}'


FEW = ('vt-resnet18', 'deit-small', 'hrformer-small', 'lv-vit-small', 'deit-small-distilled')
CLASSIFIERS = [name for name in short_models() if 'fpn' not in name and name != 'mvit-base-16x4']


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in CLASSIFIERS]
)
def test_every_classifier_trains_two_steps_by_its_name(name, photos, tmp_path, monkeypatch):
    train_two_steps(name, photos, tmp_path, monkeypatch, epochs=1)


@pytest.mark.parametrize(
    'name', ['vt-fpn_r18', *(pytest.param(f'{each}', marks=pytest.mark.slow) for each in SEGMENTORS)]
)
def test_every_segmentor_trains_two_steps_by_its_name(name, scenes, tmp_path, monkeypatch):
    train_two_steps(name, scenes, tmp_path, monkeypatch, iterations=2, **{'train_cfg.val_interval': 2})


def test_the_video_model_trains_two_steps_by_its_name(tmp_path, monkeypatch):
    for index in range(10):
        split, kind = 'val' if index > 7 else 'train', 'up' if index % 2 else 'down'
        write(tmp_path / f'clips/{split}/{kind}/{index}.mp4', draw(20, shade=90 * (index % 2)))
    train_two_steps('mvit-base-16x4', tmp_path / 'clips', tmp_path, monkeypatch, epochs=1)
