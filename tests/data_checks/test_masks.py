"""Masks whose values, colours or settings don't fit the classes are named before a run, with what would fit."""

import numpy as np
import pytest
from mmengine.config import Config
from PIL import Image

import vt
from vt.commands.check_dataset import read_data
from vt.data_checks.data import check_data
from vt.engine.config.data import Data
from vt.errors import UserError


@pytest.fixture
def data(tmp_path):
    """A function that writes masks with images of their size, and gives a config that trains on them."""

    def data(*masks, classes=('a', 'b', 'c'), exif=None, suffix='png', **options):
        for index, mask in enumerate(masks):
            mask = mask if isinstance(mask, Image.Image) else Image.fromarray(mask)
            image = Image.new('RGB', mask.size if exif is None or exif < 5 else mask.size[::-1])
            header = image.getexif()
            if exif:
                header[0x0112] = exif
            for folder, what, name in (('images', image, f'{index}.jpg'), ('masks', mask, f'{index}.{suffix}')):
                (tmp_path / folder).mkdir(exist_ok=True)
                what.save(tmp_path / folder / name, **(dict(exif=header) if exif and folder == 'images' else {}))
        dataset = dict(
            type='BaseSegDataset',
            data_root=str(tmp_path),
            data_prefix=dict(img_path='images', seg_map_path='masks'),
            seg_map_suffix=f'.{suffix}',
            metainfo=dict(classes=classes),
            pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')],
        )
        model = dict(decode_head=dict(type='FCNHead', num_classes=len(classes)))
        return Config(dict(default_scope='mmseg', model=model, train_dataloader=dict(dataset=dataset | options)))

    return data


def error(cfg):
    """The line that ends a training; what ``check_dataset`` says too."""
    with pytest.raises(UserError) as caught:
        check_data(Data(cfg), ('train',))
    assert read_data(Data(cfg), ('train',), 2)[0]['problems']
    assert '\n' not in str(caught.value)
    return str(caught.value)


def halves(*values, dtype=np.uint8):
    """A mask of columns of these values."""
    return np.repeat(np.array([values], dtype), 8, axis=0).repeat(3, axis=1)


@pytest.mark.parametrize(
    ('mask', 'options', 'words'),
    [
        (halves(0, 255), dict(classes=('a', 'b')), "only one class, 'a', in 1 mask: replace 255 by 1 ('b')"),
        (halves(0, 1), dict(classes=('a', 'b'), reduce_zero_label=True), "set it to False if 0 is 'a'"),
        (halves(0, 0), {}, "pixels of only one class, 'a', in 1 mask: nothing is learned"),
        (halves(0, 128, 255), {}, "contain 0, 128, 255 for 3 classes: replace 128 by 1 ('b'), 255 by 2 ('c')"),
        (halves(1, 2, 3), {}, "contain 1, 2, 3 for 3 classes: if 1 is 'a', set reduce_zero_label=True"),
        (halves(0, 1, 2, 3), {}, 'for 3 classes: add the class of 0 to classes, or set reduce_zero_label'),
        (halves(0, 7, 9, 11, 13), {}, 'contain 0, 7, 9, 11, 13 for 3 classes: use labels from 0 to 2, or add'),
        (halves(0, 1, 700, dtype=np.uint16), {}, 'has mode I;16, but a mask must have one 8-bit label per pixel'),
        (halves(0, 1, 2), dict(suffix='jpg'), 'is a JPEG, whose compression changes labels: save masks as PNG'),
    ],
)
def test_values_that_are_no_labels(data, mask, options, words):
    assert words in error(data(mask, **options))


@pytest.mark.parametrize(
    ('mask', 'options', 'words'),
    [
        (halves(1, 2), {}, "has no pixel of 'a', in 1 mask: if 1 is 'a', set reduce_zero_label=True"),
        (halves(0, 1, 2), dict(reduce_zero_label=True), "has no pixel of 'c', in 1 mask: reduce_zero_label=True"),
        (halves(0, 1, 2), dict(exif=3), 'images/0.jpg, which is rotated by its EXIF orientation when it is read'),
    ],
)
def test_masks_that_may_be_meant_so(data, mask, options, words):
    cfg = data(mask, **options)
    (warning,) = check_data(Data(cfg), ('train',))
    assert words in warning
    report = read_data(Data(cfg), ('train',), 2)[0]
    assert not report['problems']
    assert words in report['warnings'][0]['message']


def test_whole_masks_pass(data):
    drawn = Image.fromarray(halves(0, 1, 2, 255), mode='P')
    drawn.putpalette([*range(256)] * 3)
    assert check_data(Data(data(halves(0, 1, 2), drawn, exif=6)), ('train',)) == []


def test_an_image_that_is_turned_without_its_mask(data, tmp_path):
    cfg = data(halves(0, 1, 2), exif=6)
    Image.fromarray(halves(0, 1, 2).T).save(tmp_path / 'masks/0.png')
    assert 'rotated by its EXIF orientation: rotate the mask, too' in error(cfg)


def test_the_parts_of_a_split_count_together(data, tmp_path):
    cfg = data(halves(0, 0), halves(1, 2))
    part = cfg.train_dataloader.dataset
    parts = [dict(part, indices=[index]) for index in (0, 1)]
    cfg.train_dataloader.dataset = dict(type='ConcatDataset', datasets=parts)
    assert check_data(Data(cfg), ('train',)) == []


def test_masks_in_memory_are_counted():
    dataset = dict(type='vt.DigitScenes', split='train', num_scenes=4, pipeline=[dict(type='PackSegInputs')])
    cfg = Config(dict(default_scope='mmseg', train_dataloader=dict(dataset=dataset)))
    assert all('has no pixel of' in warning for warning in check_data(Data(cfg), ('train',)))
    report = read_data(Data(cfg), ('train',), 2)[0]
    scenes = vt.DigitScenes('train', num_scenes=4)
    pixels = sum(np.bincount(scene['gt_seg_map'].ravel(), minlength=11) for scene in scenes)
    assert [*report['data_sets'][0]['classes'].values()] == pixels.tolist()
