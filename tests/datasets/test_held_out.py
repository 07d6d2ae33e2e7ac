"""``val_fraction``: a fraction of each class is held out of a folder without splits."""

from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from mmengine.registry import DATASETS

from vt.apis import find_config
from vt.data_checks.data import check_data
from vt.datasets.held_out import choose_held_out, group_images
from vt.engine.config.data import Data
from vt.engine.config.steps import RunOptions, prepare
from vt.errors import UserError

FOLDER = str(find_config('vt-resnet18_1xb32-90e_image-folder'))
SIZES = dict(cat=20, dog=7, fox=2, owl=1)


@given(some.lists(some.integers(0, 3), max_size=60), some.floats(0.05, 0.95), some.integers(0, 9))
def test_each_class_is_split(classes, fraction, seed):
    held_out = choose_held_out(len(classes) * ('',), tuple(classes), fraction, seed).held_out
    for name in {*classes}:
        all_of = {index for index, each in enumerate(classes) if each == name}
        assert len(held_out & all_of) == min(max(round(fraction * len(all_of)), 1), len(all_of) - 1)


def held_out_names(folder, names, seed=0):
    """Return those of the names below a folder, beginning with their class, that are held out."""
    chosen = choose_held_out(tuple(f'{folder}/{name}' for name in names), tuple(name[0] for name in names), 0.2, seed)
    return {names[index] for index in chosen.held_out}


@given(some.sets(some.from_regex(r'[ab]/[a-z]{1,3}', fullmatch=True), min_size=20), some.randoms(use_true_random=False))
def test_the_choice_is_of_names_in_their_folder_and_the_seed(names, random):
    names = [*sorted(names), 'a/0', 'b/0']  # of both classes, so that what all have in common is the folder
    chosen = held_out_names('data', names)
    assert held_out_names('/another/place', random.sample(names, len(names))) == chosen
    assert len({frozenset(held_out_names('data', names, seed)) for seed in range(9)}) > 1
    assert len(chosen ^ held_out_names('data', [*names, 'a/1'])) <= 2  # one more in a class, or another instead


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
    cfg = prepare(FOLDER, RunOptions(images)).cfg
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
    assert not any('is also the data set of' in line for line in check_data(Data(cfg), ('train', 'val')))
    cfg.dump('written.py')
    assert prepare('written.py', RunOptions()).cfg.val_dataloader == cfg.val_dataloader
    with pytest.raises(UserError, match=r'the config already holds out 0\.2'):
        prepare('written.py', RunOptions(dict(val_fraction=0.5)))
    prepare(FOLDER, RunOptions(images, validates=False)).cfg.dump('without.py')
    assert prepare('without.py', RunOptions()).cfg.train_dataloader == cfg.train_dataloader


def test_what_cannot_be_separated_is_said(images):
    for number in (0, 2):
        cv2.imwrite(f'data/dog/copy{number}.bmp', cv2.imread(f'data/cat/{number:02}.png'))
    cfg = prepare(FOLDER, RunOptions(images)).cfg
    train, val = build(cfg, 'train'), build(cfg, 'val')
    files = {Path(val.get_data_info(index)['img_path']).name for index in range(len(val))}
    for same in ({'00.png', '01.jpg', 'copy0.bmp'}, {'02.png', '03.jpg', 'copy2.bmp'}):
        assert len(files & same) in (0, 3)
    assert val.note == ''
    numbers, *words = train.note.split('; ')
    assert numbers == f'val_fraction=0.2: {len(train)} samples train, {len(val)} validate'
    twice = 'images in several classes: 2, such as data/cat/00.png and data/dog/copy0.bmp'
    assert words == ['classes without a validation image: 1 (owl)', twice]


def photographs(generator, number):
    """Images of which no two look the same."""
    shown = generator.integers(0, 256, (number, 6, 8, 3), np.uint8)
    return [cv2.resize(image, (192, 144), interpolation=cv2.INTER_CUBIC) for image in shown]


def under_a_camera(generator, number, scenes=1, light=0.1, noise=6):
    """Images of few scenes that differ in light and noise, by up to a pixel in place, and by a scratch."""
    images, scenes = [], photographs(np.random.default_rng(1), scenes)
    for index in range(number):
        image = scenes[index % len(scenes)] * generator.uniform(1 - light, 1)
        image = np.roll(image, generator.integers(-1, 2, 2), (0, 1))
        start = generator.integers(20, 120, 2)
        cv2.line(image, start.tolist(), (start + generator.integers(-18, 19, 2)).tolist(), (20, 20, 25), 2)
        images.append(image + generator.normal(0, noise, image.shape))
    return images


def pages(generator, number):
    """Equal frames around a few words, as screenshots, forms and plates."""
    images = np.full((number, 144, 192, 3), 240, np.uint8)
    for image in images:
        cv2.rectangle(image, (0, 0), (191, 143), (90, 30, 20), 24)
        for line in (52, 80, 108):
            cv2.putText(image, ''.join(generator.choice([*'abcdefgh '], 7)), (28, line), 0, 0.8, (0, 0, 0), 2)
    return images


def fields(generator, number):
    """Gray fields of a microscope with some faint spots."""
    images = np.full((number, 144, 192, 3), 140.0)
    for image in images:
        for spot in generator.integers(0, 144, (5, 2)):
            cv2.circle(image, spot.tolist(), 6, (120, 120, 120), -1)
    return images + generator.normal(0, 3, images.shape)


@pytest.mark.parametrize(
    ('kinds', 'sizes'),
    [
        ((under_a_camera, under_a_camera), (40, 40)),
        ((under_a_camera, under_a_camera), (30, 5)),
        ((under_a_camera, photographs), (20, 5)),
        ((partial(under_a_camera, scenes=2), photographs), (40, 5)),
        ((partial(under_a_camera, light=0, noise=2), photographs), (40, 5)),
        ((pages, pages), (30, 5)),
        ((fields, fields), (30, 5)),
    ],
)
def test_where_all_looks_alike_each_class_is_split_and_copies_stay_together(kinds, sizes, tmp_path):
    generator, files, sources = np.random.default_rng(0), [], []
    for name, kind, size in zip('ab', kinds, sizes):
        (tmp_path / name).mkdir()
        for index, image in enumerate(np.clip(kind(generator, size), 0, 255).astype(np.uint8)):
            small = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
            copies = {'.bmp': image, '.jpg': image, '-small.png': small} if index % 5 == 1 else {}
            for suffix, pixels in dict({'.png': image}, **copies).items():
                sources.append((name, index))
                files.append(str(tmp_path / name / f'{index}{suffix}'))
                cv2.imwrite(files[-1], pixels)
    classes = tuple(name for name, _ in sources)
    held_out = choose_held_out(tuple(files), classes, 0.2, 0).held_out
    turned = choose_held_out(tuple(files[::-1]), classes[::-1], 0.2, 0).held_out
    assert turned == {len(files) - 1 - index for index in held_out}
    assert len(group_images(files, classes)[0]) > 0.9 * sum(sizes)  # different images are apart
    assert len({(source, index in held_out) for index, source in enumerate(sources)}) == sum(sizes)
    for name in 'ab':
        assert sum(classes[index] == name for index in held_out) == round(0.2 * classes.count(name))


def test_copies_are_found_among_many_images(tmp_path):
    images = photographs(np.random.default_rng(0), 300)
    files = [str(tmp_path / f'{index}{suffix}') for suffix in ('.png', '.jpg') for index in range(300)]
    for file, image in zip(files, 2 * images):
        cv2.imwrite(file, image[::3, ::3])
    groups = group_images(files, range(600))[0]
    assert sorted(map(sorted, groups)) == [[index, index + 300] for index in range(300)]


def test_flat_and_transparent_images_differ(images):
    for index in range(10):
        image = np.full((32, 32, 4), index, np.uint8)
        cv2.imwrite(f'data/cat/flat-{index}.png', image[..., :3])
        image[..., 3] = cv2.circle(np.zeros((32, 32)), (3 * index, 16), 4, 255, -1)
        cv2.imwrite(f'data/dog/clear-{index}.png', image)
    files = tuple(map(str, sorted(Path('data').glob('*/*-*.png'))))
    assert len(choose_held_out(files, 10 * ('cat',) + 10 * ('dog',), 0.2, 0).held_out) == 4


def test_folders_of_splits_are_no_classes_and_a_class_may_be_named_train(images):
    Path('data/cat').rename('data/train')
    assert build(prepare(FOLDER, RunOptions(images)).cfg, 'val').metainfo['classes'] == ('dog', 'fox', 'owl', 'train')
    Path('data/Testing/cat').mkdir(parents=True)
    with pytest.raises(UserError, match='has the splits Testing, train, not classes: set data_prefix'):
        prepare(FOLDER, RunOptions(images))


@pytest.mark.parametrize('wrong', [dict(val_fraction=2), dict(val_fraction=1.0), dict(val_fraction=0.5, fold=0)])
def test_what_is_no_fraction_is_refused(wrong, images):
    with pytest.raises(UserError, match=r'must be a number between 0 and 1|val_fraction=0.5 and fold=0 both hold out'):
        prepare(FOLDER, RunOptions(images | wrong))
