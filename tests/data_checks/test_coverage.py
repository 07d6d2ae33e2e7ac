"""Every file of a data folder is a sample, or counted with the reason why it is not."""

import numpy as np
import pytest
from mmpretrain.datasets import CustomDataset
from mmseg.datasets import BaseSegDataset
from PIL import Image

from vt.data_checks.coverage import OTHER, SECOND, UNLISTED, look_at_coverage, problems_of


def write(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() in ('.png', '.webp', '.tiff', '.jpg'):
            Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(path)
        else:
            path.write_text('')


def counts(coverage):
    return {text: reason.number for text, reason in coverage.left_out.items()}


def load(kind, **options):
    dataset = kind(lazy_init=True, serialize_data=False, **options)
    dataset.full_init()
    return dataset


def test_class_folders(tmp_path):
    used = ['a/0.png', 'a/1.PNG', 'b/below/2.jpg']
    write(tmp_path, *used, 'b/3.webp', 'b/4.tiff', 'b/.5.png', 'labels.txt', '6.png')
    (coverage,) = look_at_coverage(load(CustomDataset, data_root=str(tmp_path / ''), data_prefix='.'))
    assert coverage.used == 3
    found = counts(coverage)
    assert (found.pop(OTHER), found.pop('not in a class folder: move it into one')) == (2, 1)
    assert [*found.values()] == [1, 1]
    messages = [problem.message for problem in problems_of([coverage])]
    assert any('3.webp' in message and "'.webp'" in message for message in messages)
    wider = load(CustomDataset, data_prefix=str(tmp_path), extensions=('.png', '.jpg', '.webp', '.tiff'))
    assert look_at_coverage(wider)[0].used == 5


def test_photos_that_cannot_be_read_are_named(tmp_path):
    write(tmp_path, 'a/0.png', 'b/1.png', 'b/2.HEIC', 'b/3.heic', 'b/4.dng')
    coverage = look_at_coverage(load(CustomDataset, data_root=str(tmp_path), data_prefix='.'))
    messages = sorted(problem.message for problem in problems_of(coverage))
    assert 'DNG is not read here: convert such files to JPEG or PNG' in messages[0]
    assert 'has unused files (2)' in messages[1]


def test_a_list_may_leave_files_out(tmp_path):
    write(tmp_path, '0.png', '1.png')
    (tmp_path / 'list.txt').write_text('0.png 0\n')
    dataset = load(CustomDataset, data_root=str(tmp_path), data_prefix='.', ann_file='list.txt')
    (coverage,) = look_at_coverage(dataset)
    assert (coverage.used, counts(coverage)) == (1, {UNLISTED: 1, OTHER: 1})
    assert not problems_of([coverage])


@pytest.mark.parametrize('suffix', ['.png', '.PNG'])
def test_images_and_masks_by_their_suffixes(tmp_path, suffix):
    write(tmp_path, 'images/0.png', f'images/1{suffix}', 'images/2.jpg', *(f'masks/{index}.png' for index in range(4)))
    prefix = dict(img_path='images', seg_map_path='masks')
    options = dict(data_root=str(tmp_path), data_prefix=prefix, img_suffix='.png', metainfo=dict(classes=('a', 'b')))
    images, masks = look_at_coverage(load(BaseSegDataset, **options))
    used = 2 if suffix == '.png' else 1
    assert images.used == masks.used == used
    (reason,) = counts(images).items()
    assert reason[0].startswith("its name does not end in img_suffix='.png': rename such files, or use type='vt.Images")
    assert reason[1] == 3 - used
    assert counts(masks) == {'a mask without an image': 4 - used}


def test_masks_that_are_left_out_on_purpose(tmp_path):
    """Of images that a list leaves out, or several of an image, or in one folder with the images."""
    write(tmp_path, *(f'{index}.jpg' for index in range(3)), *(f'{index}_labels.png' for index in range(3)))
    write(tmp_path, '0_color.png', '5_color.png', '5_labels.png')
    (tmp_path / 'list').write_text('0\n1\n')
    prefix = dict(img_path='', seg_map_path='')
    dataset = load(
        BaseSegDataset,
        data_root=str(tmp_path),
        data_prefix=prefix,
        ann_file='list',
        seg_map_suffix='_labels.png',
        metainfo=dict(classes=('a', 'b')),
    )
    _, masks = look_at_coverage(dataset)
    found = counts(masks)
    assert [found[reason] for reason in (UNLISTED, SECOND, 'a mask without an image')] == [1, 1, 1]
