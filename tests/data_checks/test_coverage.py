"""Every file of a data folder that could be a sample is one, or named with the reason why it is not.

Images of any kind, and their masks, are found by their names without the suffix.
"""

import os

import numpy as np
import pytest
from mmengine.config import Config
from mmpretrain.datasets import CustomDataset
from mmseg.datasets import BaseSegDataset
from PIL import Image

import vt
from vt.data_checks.data import check_data, find_left_out
from vt.engine.config.data import Data
from vt.errors import UserError


def write(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() in ('.png', '.webp', '.tiff', '.jpg'):
            Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(path)
        else:
            path.write_text('')


def left_out(kind, root, **options):
    """The reasons why files of a data set are not used, and how many are not."""
    dataset = kind(lazy_init=True, serialize_data=False, data_root=str(root), **options)
    dataset.full_init()
    messages = [problem.message for problem in find_left_out(dataset)]
    return {message.partition(': ')[2]: int(message.split('(')[1].split(')')[0]) for message in messages}


FOLDERS = dict(img_path='images', seg_map_path='masks')
NO_FOLDER = 'not in a class folder: move it into one'
ALONE = 'a mask without an image'
WEBP = "the suffix .webp is not in the extensions of the data set: set extensions=['.jpg', '.png', '.webp']"
HEIC, DNG = (f'{name} is not supported: convert such files to JPEG or PNG' for name in ('HEIC', 'DNG'))
SUFFIX = "its name does not end in img_suffix='.png': rename such files, or use type='vt.ImagesAndMasks'"


@pytest.mark.parametrize(
    ('names', 'options', 'expected'),
    [
        (['b/3.webp', 'b/.5.png', 'labels.txt', '6.png'], {}, {NO_FOLDER: 1, WEBP: 1}),
        (['b/3.webp', 'b/4.tiff'], dict(extensions=('.png', '.jpg', '.webp', '.tiff')), {}),
        (['b/2.HEIC', 'b/3.heic', 'b/4.dng'], {}, {HEIC: 2, DNG: 1}),
        (['list.txt', '7.png'], dict(ann_file='list.txt'), {}),
    ],
)
def test_class_folders(tmp_path, names, options, expected):
    write(tmp_path, 'a/0.png', 'a/1.PNG', 'b/below/2.jpg', *names)
    if 'ann_file' in options:
        (tmp_path / 'list.txt').write_text('a/0.png 0\n')
    options = dict(extensions=('.jpg', '.png')) | options
    assert left_out(CustomDataset, tmp_path, data_prefix='.', **options) == expected


@pytest.mark.parametrize(('suffix', 'expected'), [('.png', {SUFFIX: 1, ALONE: 3}), ('.PNG', {SUFFIX: 2, ALONE: 4})])
def test_images_and_masks_by_their_suffixes(tmp_path, suffix, expected):
    write(tmp_path, 'images/0.png', f'images/1{suffix}', 'images/2.jpg', *(f'masks/{index}.png' for index in range(4)))
    write(tmp_path, 'masks/0_7.png')
    options = dict(data_prefix=FOLDERS, img_suffix='.png', metainfo=dict(classes=('a', 'b')))
    assert left_out(BaseSegDataset, tmp_path, **options) == expected


TABLE = "for labels in data/labels.csv set type='vt.MultiLabelImages'"
SEGMENTATION = dict(type='vt.ImagesAndMasks', data_prefix=dict(img_path='train'), metainfo=dict(classes=('a', 'b')))


@pytest.mark.parametrize(
    ('names', 'options', 'words'),
    [
        (['train/0.png', 'train/1.PNG', 'train/a.txt'], {}, 'train has 2 .png, 1 .txt: make a folder for each class, '),
        (['train/0.png', 'labels.csv'], {}, TABLE),
        (['0.png', '1.png'], {}, 'data has 2 .png: move images to data/train/CLASS and data/val/CLASS'),
        (['train/a/0.HEIC', 'train/b/1.heic', 'train/b/2.mov'], {}, 'has 2 .heic, 1 .mov: HEIC is not supported: con'),
        (['train/a/0.webp'], {}, 'has 1 .webp: the suffix .webp is not in the extensions of the data set: set ext'),
        (['train/0.heic'], dict(with_label=False), 'has 1 .heic: HEIC is not supported'),
        (['train/0.heic'], SEGMENTATION, 'has 1 .heic: HEIC is not supported'),
        (['train/images/0.png', 'labels.csv'], {}, f"only one class, 'images': nothing is learned; {TABLE}"),
    ],
)
def test_folders_without_samples_or_of_one_class(tmp_path, monkeypatch, names, options, words):
    write(tmp_path / 'data', *names)
    monkeypatch.chdir(tmp_path)
    scope = 'mmseg' if options is SEGMENTATION else 'mmpretrain'
    load = [dict(type='LoadImageFromFile')]
    dataset = dict(type='CustomDataset', data_root='data', data_prefix='train', pipeline=load) | options
    with pytest.raises(UserError) as caught:
        check_data(Data(Config(dict(default_scope=scope, train_dataloader=dict(dataset=dataset)))), ('train',))
    assert words in str(caught.value)


def load(**options):
    dataset = vt.ImagesAndMasks(lazy_init=True, serialize_data=False, **options)
    dataset.full_init()
    return dataset


def test_images_and_masks_of_any_suffix(tmp_path):
    write(tmp_path, 'images/0.PNG', 'images/below/1.webp', 'images/2.jpg', 'images/.3.png', 'images/notes.txt')
    write(tmp_path, 'masks/0.png', 'masks/below/1.PNG', 'masks/4.png')
    options = dict(data_root=str(tmp_path), data_prefix=FOLDERS)
    dataset = load(metainfo=dict(classes=('a', 'b')), **options)
    found = [[os.path.relpath(info[key], tmp_path) for key in ('img_path', 'seg_map_path')] for info in dataset]
    assert found == [
        ['images/0.PNG', 'masks/0.png'],
        ['images/2.jpg', 'masks/2.png'],  # not there, which is an error of the check
        ['images/below/1.webp', 'masks/below/1.PNG'],
    ]
    for whole in (dataset, load(indices=[1], **options)):
        (problem,) = find_left_out(whole)
        assert problem.message.endswith('masks/4.png: a mask without an image')
    (tmp_path / 'list').write_text('\ufeff0\r\n\r\n')
    assert len(load(ann_file='list', **options)) == 1
    assert 'seg_map_path' not in load(data_prefix=dict(img_path=str(tmp_path / 'images')))[0]


@pytest.mark.parametrize(
    ('names', 'options', 'words'),
    [
        (['0.png', '0.jpg'], {}, 'have the same name: rename one'),
        (['0.png'], dict(ann_file='list'), "names '1', but"),
        (['0.png'], dict(img_suffix='.png'), 'remove img_suffix'),
    ],
)
def test_images_and_masks_refuse(tmp_path, names, options, words):
    write(tmp_path, *names)
    (tmp_path / 'list').write_text('1\n')
    with pytest.raises(UserError, match=words):
        load(data_root=str(tmp_path), data_prefix=dict(img_path=''), **options)
