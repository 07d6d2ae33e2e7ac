"""Every file of a data folder that could be a sample is one, or named with the reason why it is not."""

import numpy as np
import pytest
from mmpretrain.datasets import CustomDataset
from mmseg.datasets import BaseSegDataset
from PIL import Image

from vt.data_checks.data import find_left_out


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


NO_FOLDER = 'not in a class folder: move it into one'
ALONE = 'a mask without an image'
WEBP = "the suffix .webp is not in the extensions of the data set: set extensions=['.jpg', '.png', '.webp']"
HEIC, DNG = (f'{name} is not read here: convert such files to JPEG or PNG' for name in ('HEIC', 'DNG'))
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
    prefix = dict(img_path='images', seg_map_path='masks')
    options = dict(data_prefix=prefix, img_suffix='.png', metainfo=dict(classes=('a', 'b')))
    assert left_out(BaseSegDataset, tmp_path, **options) == expected


def test_masks_that_are_left_out_on_purpose(tmp_path):
    """Of images that a list leaves out, or several of an image, or in one folder with the images."""
    write(tmp_path, *(f'{index}.jpg' for index in range(3)), *(f'{index}_labels.png' for index in range(3)))
    write(tmp_path, '0_color.png', '5_color.png', '5_labels.png')
    (tmp_path / 'list').write_text('0\n1\n')
    options = dict(data_prefix=dict(img_path='', seg_map_path=''), ann_file='list', seg_map_suffix='_labels.png')
    assert left_out(BaseSegDataset, tmp_path, metainfo=dict(classes=('a', 'b')), **options) == {ALONE: 2}
