"""``val_fraction``: a fraction of each class is held out of a folder without splits."""

from pathlib import Path

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
    held_out = choose_held_out(len(classes) * ('',), tuple(classes), fraction, seed)
    for name in {*classes}:
        all_of = {index for index, each in enumerate(classes) if each == name}
        assert len(held_out & all_of) == min(max(round(fraction * len(all_of)), 1), len(all_of) - 1)


def test_a_new_image_changes_few_sides():
    files = tuple(f'data/cat/{index}.png' for index in range(200))
    before, after = (choose_held_out(names, len(names) * (0,), 0.2, 0) for names in (files, ('data/cat/a.png', *files)))
    assert len({index + 1 for index in before} ^ after) <= 2


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
    cats = [{int(file[-6:-4]) // 2 for file in part if 'cat' in file} for part in files]
    assert not cats[0] & cats[1]
    assert train.metainfo['classes'] == val.metainfo['classes'] == (*SIZES,)
    assert [type(step).__name__ for step in val.dataset.pipeline.transforms][1] == 'ResizeEdge'
    assert not any('is the data set of' in line for line in check_data(cfg, ('train', 'val')))
    cfg.dump('written.py')
    assert prepare('written.py', Request()).val_dataloader == cfg.val_dataloader
    with pytest.raises(UserError, match=r'the config already holds out 0\.2'):
        prepare('written.py', Request(dict(val_fraction=0.5)))
    prepare(FOLDER, Request(images, validates=False)).dump('without.py')
    assert prepare('without.py', Request()).train_dataloader == cfg.train_dataloader


def test_flat_and_transparent_images_differ(images):
    for index in range(10):
        image = np.zeros((32, 32, 4), np.uint8)
        cv2.imwrite(f'data/cat/flat-{index}.png', image)
        image[..., 3] = cv2.circle(np.zeros((32, 32)), (3 * index, 16), 4, 255, -1)
        cv2.imwrite(f'data/dog/clear-{index}.png', image)
    files = tuple(map(str, sorted(Path('data').glob('*/*-*.png'))))
    assert len(choose_held_out(files, 10 * ('cat',) + 10 * ('dog',), 0.2, 0)) == 4


def test_folders_of_splits_are_no_classes_and_a_class_may_be_named_train(images):
    Path('data/cat').rename('data/train')
    assert build(prepare(FOLDER, Request(images)), 'val').metainfo['classes'] == ('dog', 'fox', 'owl', 'train')
    Path('data/Testing/cat').mkdir(parents=True)
    with pytest.raises(UserError, match='has the splits Testing, train, not classes: set data_prefix'):
        prepare(FOLDER, Request(images))


@pytest.mark.parametrize('wrong', [dict(val_fraction=2), dict(val_fraction=1.0), dict(val_fraction=0.5, fold=0)])
def test_what_is_no_fraction_is_refused(wrong, images):
    with pytest.raises(UserError, match=r'must be a number between 0 and 1|val_fraction=0.5 and fold=0 both hold out'):
        prepare(FOLDER, Request(images | wrong))
