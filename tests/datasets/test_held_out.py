"""``val_fraction``: a fraction of each class is held out of a folder without splits."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from mmengine.registry import DATASETS

from vt.apis import find_config
from vt.data_checks.data import check_data
from vt.datasets.held_out import choose_held_out
from vt.engine.prepare import Request, prepare
from vt.errors import UserError

FOLDER = str(find_config('vt-resnet18-tuned_1xb32-90e_image-folder'))
SIZES = dict(cat=20, dog=7, fox=2, owl=1)


@given(some.lists(some.integers(0, 3), max_size=60), some.floats(0.05, 0.95), some.integers(0, 9))
def test_each_class_is_split(classes, fraction, seed):
    held_out = choose_held_out(classes, None, fraction, seed)
    assert held_out == choose_held_out(classes, None, fraction, seed)
    for name in {*classes}:
        all_of = {index for index, each in enumerate(classes) if each == name}
        wanted = min(max(round(fraction * len(all_of)), 1), len(all_of) - 1)
        assert len(held_out & all_of) == wanted


@given(some.lists(some.integers(0, 9), min_size=2, max_size=40), some.integers(0, 9))
def test_samples_that_look_the_same_are_on_one_side(looks, seed):
    pictures = np.random.default_rng(0).random((10, 256)) < 0.5
    shown = pictures[looks]
    shown[:, :4] ^= np.random.default_rng(seed).random((len(looks), 4)) < 0.5
    held_out = choose_held_out(len(looks) * ['cat'], shown, 0.3, seed)
    sides = {(look, index in held_out) for index, look in enumerate(looks)}
    assert len(sides) == len({*looks})
    assert (len(held_out) > 0) == (len({*looks}) > 1)


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Four classes; of each image of cats, the next one is a smaller copy as JPEG."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    for name, size in SIZES.items():
        (tmp_path / 'data' / name).mkdir(parents=True)
        for index in range(size):
            if name != 'cat' or index % 2 == 0:
                pixels = generator.integers(0, 256, (6, 8, 3), np.uint8)
                image = cv2.resize(pixels, (96, 72), interpolation=cv2.INTER_CUBIC)
                cv2.imwrite(f'data/{name}/{index:02}.png', image)
            else:
                cv2.imwrite(f'data/{name}/{index:02}.jpg', cv2.resize(image, (64, 48), interpolation=cv2.INTER_AREA))
    return dict(data_root='data', val_fraction=0.2)


def build(cfg, split):
    with DATASETS.switch_scope_and_registry(cfg.default_scope):
        return DATASETS.build(cfg[f'{split}_dataloader'].dataset)


def test_a_folder_without_splits_is_split(images):
    cfg = prepare(FOLDER, Request(images))
    assert cfg.model.head.num_classes == 4
    train, val, test = (build(cfg, split) for split in ('train', 'val', 'test'))
    files = [{data.get_data_info(index)['img_path'] for index in range(len(data))} for data in (train, val, test)]
    assert (files[1], len(files[0] | files[1])) == (files[2], sum(SIZES.values()))
    assert not files[0] & files[1]
    held_out = {name: sum(f'/{name}/' in file for file in files[1]) for name in SIZES}
    assert held_out == dict(cat=4, dog=1, fox=1, owl=0)
    assert {int(file[-6:-4]) // 2 for file in files[0] if 'cat' in file}.isdisjoint(
        int(file[-6:-4]) // 2 for file in files[1] if 'cat' in file
    )
    assert train.metainfo['classes'] == val.metainfo['classes'] == (*SIZES,)
    assert [type(step).__name__ for step in val.dataset.pipeline.transforms][1] == 'ResizeEdge'
    assert not any('is the data set of' in line for line in check_data(cfg, ('train', 'val')))
    cfg.dump('written.py')
    assert prepare('written.py', Request()).val_dataloader == cfg.val_dataloader


@pytest.mark.parametrize('wrong', [dict(val_fraction=2), dict(val_fraction=1.0), dict(val_fraction=0.5, fold=0)])
def test_what_is_no_fraction_is_refused(wrong, images):
    with pytest.raises(UserError, match=r'val_fraction=.* must be between 0 and 1, without fold'):
        prepare(FOLDER, Request(images | wrong))
