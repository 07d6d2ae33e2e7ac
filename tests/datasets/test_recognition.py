"""Data at a path is recognised: data sets of any layout give the samples that were written; other data is refused."""

import json
import os
from itertools import groupby
from pathlib import Path

import datasets
import numpy as np
import pytest
from hugging_face_data import CLASSES as ROW_CLASSES
from hugging_face_data import make_rows, make_splits
from hypothesis import HealthCheck, given, settings, strategies
from mmengine.config import Config
from PIL import Image

import vt
from vt.data_checks.data import check_data
from vt.datasets.recognition import recognise
from vt.engine.config.data import Data
from vt.errors import MissingFileError, UserError

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SPLIT_NAMES = dict(train=('train', 'Train', 'training'), val=('val', 'valid', 'VALIDATION'), test=('test', 'testing'))
SCOPES = dict(segmentation='mmseg')
PIXELS = np.zeros((4, 4, 3), np.uint8)
CLUTTER = ('.DS_Store', 'Thumbs.db', '.hidden/a.png', '__MACOSX/._a.png')


@strategies.composite
def split_names(draw, least=0):
    """Splits, with the names of their folders; none for data without splits."""
    number = draw(strategies.integers(least, 3))
    return {split: draw(strategies.sampled_from(SPLIT_NAMES[split])) for split in [*SPLIT_NAMES][:number]}


def write(path, pixels=PIXELS):
    """Write an image, or bytes, or text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(pixels, np.ndarray):
        Image.fromarray(pixels).save(path)
    else:
        path.write_bytes(pixels if isinstance(pixels, bytes) else pixels.encode())


def samples_of(found):
    """Paths and labels, or masks, of each split, through the registries."""
    samples = {}
    for split, dataset in found.datasets.items():
        built = Data(Config(dict(default_scope=SCOPES.get(found.task)))).load(dataset)
        infos = [built.get_data_info(index) for index in range(len(built))]
        names = built.metainfo['classes']
        samples[split] = {}
        for info in infos:
            label = info.get('gt_label')
            meaning = names[label] if isinstance(label, int) else [names[each] for each in label or ()]
            samples[split][Path(info['img_path']).resolve()] = info.get('seg_map_path', meaning)
    return samples


def refuses(path, words, kind=UserError, **options):
    with pytest.raises(kind, match=words) as caught:
        recognise(path, **options)
    assert '\n' not in str(caught.value)
    assert str(path).rstrip('/') in str(caught.value)


@few
@given(split_names(), strategies.sampled_from(['.png', '.JPG', '.mp4']), strategies.booleans())
def test_class_folders(tmp_path_factory, splits, suffix, cluttered):
    root = tmp_path_factory.mktemp('some phötos')
    expected = {}
    for split, folder in (splits or {'train': ''}).items():
        expected[split] = {}
        for index, name in enumerate(('cat', 'dog 2', 'ééł')):
            path = root / folder / name / ('deep' if index else '') / f'{split} {index}{suffix}'
            write(path, b'')
            expected[split][path.resolve()] = name
        write(root / folder / 'cat' / 'notes.txt', '')
    write(root / 'readme.txt', '')
    are_videos = suffix == '.mp4'
    for name in CLUTTER[: (2 if are_videos and not splits else 4) * cluttered]:
        write(root / name, b'')
    found = recognise(root)
    assert found.kind == ('videos in class folders' if are_videos else 'class folders')
    assert found.task == ('video' if are_videos else 'classification')
    assert samples_of(found) == expected
    assert found.description.startswith(f'{root}: {found.kind}, 3 classes, ')


def test_hidden_folders_beside_folders_of_videos_are_refused(tmp_path):
    for name in ('cat/a.mp4', 'dog/b.mp4', '.hidden/c.txt'):
        write(tmp_path / name, b'')
    refuses(tmp_path, '.hidden would be a class of videos')


@few
@given(
    split_names(),
    strategies.sampled_from(['inside', 'outside', 'lists']),
    strategies.sampled_from([('images', 'masks'), ('img_dir', 'ann_dir'), ('JPEGImages', 'SegmentationClass')]),
    strategies.sampled_from(['numbers', 'file', 'given']),
)
def test_images_and_masks(tmp_path_factory, splits, layout, names, classes):
    root, expected = tmp_path_factory.mktemp('scenes'), {}
    for split, folder in (splits or {'train': ''}).items():
        expected[split] = {}
        place = [Path(name, '' if layout == 'lists' else folder) for name in names]
        place = [Path(folder, name) for name in names] if layout == 'outside' else place
        for index in range(3):
            image, mask = root / place[0] / f'{split}{index}.jpg', root / place[1] / f'{split}{index}.png'
            write(image)
            write(mask, np.array([[0, index], [255, 1]], np.uint8))
            expected[split][image.resolve()] = str(mask)
        if layout == 'lists' and splits:
            write(root / 'ImageSets/Segmentation' / f'{folder}.txt', ''.join(f'{split}{index}\n' for index in range(3)))
    if classes == 'file':
        write(root / 'classes.txt', 'sky\nsea\nsand\n')
    given = ('sky', 'sea', 'sand') if classes == 'given' else None
    found = recognise(root, classes=given)
    assert (found.kind, found.task, found.mask_loading) == ('images and masks', 'segmentation', None)
    assert samples_of(found) == expected
    wanted = ['0', '1', '2'] if classes == 'numbers' else ['sky', 'sea', 'sand']
    assert all(dataset['metainfo']['classes'] == wanted for dataset in found.datasets.values())
    assert ('255 is ignored' in found.description) == (classes == 'numbers')


LABELS = strategies.sampled_from(['cat', 'dog 2', 'ééł'])
SEVERAL_LABELS = strategies.lists(LABELS, unique=True, max_size=3)


@few
@given(
    split_names(),
    strategies.sampled_from(['file', 'filename', 'image', 'path', 'image_path']),
    strategies.sampled_from([',', '\t', ';']),
    strategies.sampled_from(['label', 'labels', 'columns']),
    strategies.sampled_from(['column', 'tables']),
    strategies.sampled_from(['beside', 'named', 'images', 'of the split']),
    strategies.data(),
)
def test_tables(tmp_path_factory, splits, header, separator, form, layout, where, data):
    root, expected, lines = tmp_path_factory.mktemp('table'), {}, {}
    used = splits or {'train': 'train'}
    all_names = ['cat', 'dog 2', 'ééł']
    for split, folder in used.items():
        expected[split], lines[split] = {}, []
        for index in range(4):
            labels = data.draw(SEVERAL_LABELS) if index > 2 else [all_names[index]]
            labels = all_names[:2] if index == 3 and split == 'train' and form == 'labels' else sorted(labels)
            place = {'images': 'pics/images', 'of the split': folder, 'beside': '', 'named': f'more/{folder}'}[where]
            place = 'images' if where == 'images' else place
            named = f'{place}/{split}{index}.png' if where == 'named' else f'{split}{index}.png'
            path = root / place / f'{split}{index}.png'
            write(path, b'')
            if form == 'label':
                labels = all_names[index % 3]
            cells = [labels] if form == 'label' else ['|'.join(labels)]
            cells = [str(int(name in labels)) for name in all_names] if form == 'columns' else cells
            lines[split].append([named, *[folder] * (layout == 'column' and bool(splits)), *cells])
            expected[split][path.resolve()] = labels
    first = [header, *['split'] * (layout == 'column' and bool(splits))]
    first += all_names if form == 'columns' else [form]
    suffix = 'tsv' if separator == '\t' else 'csv'
    tables = {'all': [line for each in lines.values() for line in each]}
    if layout == 'tables' and splits:
        tables = {folder: lines[split] for split, folder in splits.items()}
    for name, content in tables.items():
        write(root / f'{name}.{suffix}', '\n'.join(separator.join(line) for line in [first, *content]))
    paths = [root, *([root / f'all.{suffix}'] if 'all' in tables else [])]
    for path in paths:
        found = recognise(path)
        task = 'classification' if form == 'label' else 'multi-label'
        assert (found.kind, found.task) == ('table', task)
        assert samples_of(found) == expected
        assert f'{4 * len(used)} images' in found.description


def test_labels_that_are_numbers_of_given_classes(tmp_path):
    for name in 'abc':
        write(tmp_path / f'{name}.png')
    write(tmp_path / 'all.csv', 'file,label,age\na.png,1,3\nb.png,0,4\nc.png,dog,5\n')
    found = recognise(tmp_path, classes=['cat', 'dog'])
    assert [*samples_of(found)['train'].values()] == ['dog', 'cat', 'dog']
    write(tmp_path / 'all.csv', 'file,label\na.png,10\nb.png,9\nc.png,9\n')
    assert [*samples_of(recognise(tmp_path))['train'].values()] == ['10', '9', '9']
    assert vt.ImageTable('all.csv', data_root=str(tmp_path)).metainfo['classes'] == ('9', '10')


def test_forms_of_a_path(tmp_path, monkeypatch):
    root = tmp_path / 'my photos'
    for name in ('cat/a.png', 'dog/b.png'):
        write(root / name)
    (tmp_path / 'link').symlink_to(root)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('HOME', str(tmp_path))
    for path in (root, f'{root}/', 'my photos', './my photos/', '~/my photos', 'link', 'link/', 'my photos/../link'):
        found = recognise(path)
        assert {*samples_of(found)['train']} == {root / 'cat/a.png', root / 'dog/b.png'}
        assert found.datasets['train']['data_root'] in (str(root), 'my photos', 'link', 'my photos/../link')


CLASSES = ['cat/a.png', 'dog/b.png']
REFUSED = {
    'class folders and a table': (
        [*CLASSES, ('all.csv', 'file,label\ncat/a.png,x\ndog/b.png,y\n')],
        'can be read as class folders .* or as table',
    ),
    'images without classes': (['a.png', 'b.png'], 'has the files 2 .png: no classes; move'),
    'splits without classes': (['train/a.png', 'val/a.png'], 'train has no folders of images'),
    'nested classes': (
        ['animals/cat/a.png', 'plants/oak/b.png'],
        'the classes must be the folders in .* further folders in animals',
    ),
    'one class': (['cat/a.png'], 'has only one class, cat'),
    'a split beside classes': (
        ['train/cat/a.png', 'train/dog/a.png', 'bus/b.png'],
        'train, the name of a split, is beside bus',
    ),
    'only validation': (['val/cat/a.png', 'val/dog/b.png'], 'there is val, but no folder train'),
    'two names of a split': (['Train/cat/a.png', 'train/dog/b.png'], 'has Train and train, both for the split train'),
    'texts in a class': ([*CLASSES, ('notes/a.txt', '')], 'notes has files, but no images or videos'),
    'unreadable': (['cat/a.heic', 'dog/b.HEIC'], 'HEIC is not supported'),
    'other files': ([('a.parquet', '')], '1 .parquet: expected are'),
    'one folder deeper': (['photos/train/cat/a.png', 'photos/train/dog/a.png'], 'the folders photos and'),
    'labels of boxes': (['images/a.png', ('labels/a.txt', '0 1 1 1 1')], 'has 1 .txt, but masks must be images'),
    'masks of other names': (['images/a.png', 'masks/a_mask.png'], 'give each mask the name of its image'),
    'two folders of masks': (['images/a.png', 'masks/a.png', 'labels/a.png'], 'labels and masks, both of masks'),
    'masks without train': (['images/val/a.png', 'masks/val/a.png'], 'no folder train of both'),
    'several tables': (
        ['a.png', *[(f'{name}.csv', 'file,label\na.png,x\n') for name in 'ab']],
        'has the tables a.csv, b.csv',
    ),
    'a table without images': ([('all.csv', 'file,label\na.png,x\n')], 'names a.png, which is neither in'),
    'a table of no files': (['a.png', ('all.csv', 'id,label\na.png,x\n')], 'has no column named file'),
    'a table without a header': (['a.png', ('all.csv', 'a.png,x\n')], 'line 1 must name the columns'),
    'a table of no images': (['a.png', ('all.csv', 'file,label\n')], 'lists no images'),
    'a table of unknown splits': (['a.png', ('all.csv', 'file,split,label\na.png,fold1,x\n')], "has the split 'fold1'"),
    'a table of other columns': (
        ['a.png', ('all.csv', 'file,width,height\na.png,3,4\n')],
        'has the columns width, height',
    ),
    'one label or several': (
        ['a.png', 'b.png', ('all.csv', 'file,labels\na.png,x\nb.png,y\n')],
        'can be read as table for classification .* or as table for multi-label',
    ),
    'spelling': (['a.png', 'b.png', ('all.csv', 'file,label\na.png,x\nb.png,X\n')], 'line 3 has the label'),
    'images in two folders': (
        ['x/a.png', 'y/a.png', ('all.csv', 'file,label\na.png,x\n')],
        'names a.png, which is in x and in y',
    ),
}


@pytest.mark.parametrize(('files', 'words'), REFUSED.values(), ids=REFUSED)
def test_other_data_is_refused_in_one_line(tmp_path, files, words):
    for file in files:
        name, content = file if isinstance(file, tuple) else (file, PIXELS if file.endswith('.png') else b'')
        write(tmp_path / name, content)
    refuses(tmp_path, words)


def test_paths_without_data_are_refused(tmp_path):
    refuses(tmp_path / 'none', 'there is no', MissingFileError)
    refuses(tmp_path, 'has no files')
    for name, words in {'a.zip': 'unpack it', 'a.png': 'neither a CSV', 'a.csv': 'line 1 must name'}.items():
        write(tmp_path / name, b'')
        refuses(tmp_path / name, words)
    write(tmp_path / 'a.csv', b'\xff\xfe\x00file,\x00\n')
    refuses(tmp_path / 'a.csv', '')
    with pytest.raises(MissingFileError, match='there is no empty path'):
        recognise('')


def test_the_task_chooses_a_reading(tmp_path):
    for name in ('cat/a.png', 'dog/b.mp4'):
        write(tmp_path / name, b'')
    refuses(tmp_path, 'can be read as class folders for classification .* or as videos in class folders for video')
    assert recognise(tmp_path, task='video').kind == 'videos in class folders'
    assert recognise(tmp_path, task='classification').kind == 'class folders'
    refuses(tmp_path, 'but the model is for segmentation', task='segmentation')
    refuses(tmp_path, 'has 2 class folders, but classes has 3', classes=[*'abc'])
    refuses(tmp_path, 'remove colours', task='video', colours=dict(a=(0, 0, 0)))


def test_classes_that_have_the_name_of_a_split(tmp_path):
    for name in ('train/a.png', 'bus/a.png'):
        write(tmp_path / name)
    refuses(tmp_path, 'is beside bus')
    assert len(samples_of(recognise(tmp_path, classes=['bus', 'train']))['train']) == 2


def test_unreadable_folders_are_one_line(tmp_path, monkeypatch):
    real = os.scandir

    def scandir(path):
        if Path(path).name == 'cat':
            raise PermissionError(13, 'Permission denied', str(path))
        return real(path)

    for name in CLASSES:
        write(tmp_path / name)
    monkeypatch.setattr(os, 'scandir', scandir)
    refuses(tmp_path, 'could not be read .Permission denied')


@pytest.fixture(scope='module')
def rows(tmp_path_factory):
    """Rows with images, labels and masks, with splits and without."""
    folder = tmp_path_factory.mktemp('rows')
    make_splits().save_to_disk(folder / 'splits')
    make_rows(range(4)).save_to_disk(folder / 'one')
    (folder / 'odd').mkdir()
    datasets.Dataset.from_dict(dict(text=['a'])).save_to_disk(folder / 'odd')
    numbers = make_rows(range(4)).remove_columns(['label', 'mask', 'shown']).add_column('label', [0, 3, 1, 0])
    numbers.save_to_disk(folder / 'numbers')
    return folder


@pytest.mark.parametrize(
    ('name', 'splits'), [('splits', dict(train='train', val='validation')), ('one', dict(train='train'))]
)
def test_rows(rows, name, splits):
    refuses(rows / name, 'can be read as rows for classification .* or as rows for segmentation')
    found = recognise(rows / name, task='classification')
    assert {split: dataset['split'] for split, dataset in found.datasets.items()} == splits
    for split, own in samples_of(found).items():
        seeds = {'train': range(4) if name == 'one' else range(12), 'val': range(100, 108)}[split]
        assert [*own.values()] == [ROW_CLASSES[seed % 3] for seed in seeds]
    masks = recognise(rows / name, task='segmentation')
    assert (masks.kind, masks.mask_loading) == ('rows', None)
    assert masks.datasets['train']['metainfo'] == dict(classes=['0', '1', '2'])
    assert all(str(mask).startswith('rows://') for mask in samples_of(masks)['train'].values())
    assert (
        recognise(rows / name, ['x', 'y', 'z'], task='segmentation').datasets['train']['metainfo']['classes'][2] == 'z'
    )


def test_rows_of_numbers_and_other_rows(rows):
    found = recognise(rows / 'numbers')
    assert [*samples_of(found)['train'].values()] == ['0', '3', '1', '0']
    refuses(rows / 'odd', 'the columns are text, not an image')
    (rows / 'odd/state.json').write_text('[]')
    (rows / 'odd/dataset_info.json').write_text('{"features": 3}')
    refuses(rows / 'odd', 'is damaged')


COLOURS = dict(sky=(0, 0, 0), sea=(0, 0, 255), sand=(250, 200, 10))


def masks_of(found):
    """Masks of the training data, as pipelines load them, by the stems of their images."""
    load = found.mask_loading or dict(type='LoadAnnotations')
    pipeline = [dict(type='LoadImageFromFile'), load, dict(type='PackSegInputs')]
    config = Config(
        dict(default_scope='mmseg', train_dataloader=dict(dataset=found.datasets['train'] | dict(pipeline=pipeline)))
    )
    assert check_data(Data(config), ('train',)) == []
    built = Data(config).load(config.train_dataloader.dataset)
    samples = [built[index]['data_samples'] for index in range(len(built))]
    return {Path(sample.img_path).stem: sample.gt_sem_seg.data[0].numpy() for sample in samples}


@few
@given(
    strategies.integers(0, 2**32 - 1),
    strategies.sampled_from(['given', 'spaces', 'labelmap']),
    strategies.sampled_from(['RGB', 'RGBA', 'P']),
    strategies.booleans(),
)
def test_masks_in_colours(tmp_path_factory, seed, source, mode, ordered):
    root, expected = tmp_path_factory.mktemp('colours'), {}
    names = sorted(COLOURS) if ordered else [*COLOURS]
    palette = Image.new('P', (1, 1))
    palette.putpalette([part for colour in COLOURS.values() for part in colour])
    for index in range(3):
        labels = np.random.default_rng([seed, index]).integers(0, 3, (5, 7), np.uint8)
        expected[f'{index}'] = labels
        write(root / f'images/{index}.png', np.zeros((5, 7, 3), np.uint8))
        (root / 'masks').mkdir(exist_ok=True)
        pixels = np.array([COLOURS[name] for name in names], np.uint8)[labels]
        mask = Image.fromarray(pixels).convert('RGB' if mode == 'P' else mode)
        mask = mask.quantize(palette=palette, dither=Image.Dither.NONE) if mode == 'P' else mask
        mask.save(root / f'masks/{index}.png')
    texts = dict(spaces='{} {} {} {}', labelmap='{}:{},{},{}::')
    if source in texts:
        lines = ['# label:color_rgb:parts:actions', *(texts[source].format(name, *COLOURS[name]) for name in COLOURS)]
        write(root / ('labelmap.txt' if source == 'labelmap' else 'colours.txt'), '\n'.join(lines))
    found = recognise(root, classes=names, colours=COLOURS if source == 'given' else None)
    assert found.datasets['train']['metainfo']['classes'] == names
    assert found.mask_loading['colours'] == [[*COLOURS[name]] for name in names]
    masks = masks_of(found)
    assert all(np.array_equal(masks[name], labels) for name, labels in expected.items())


def test_colours_that_do_not_fit(tmp_path):
    write(tmp_path / 'images/a.png')
    write(tmp_path / 'masks/a.png', PIXELS + np.uint8(7))
    found = recognise(tmp_path, colours=COLOURS)
    with pytest.raises(UserError, match=r'masks/a.png .*has the colour \(7, 7, 7\), which is of no class'):
        masks_of(found)
    assert np.all(
        vt.LoadColourMasks([(0, 0, 0)], unknown='ignore')(dict(seg_map_path=tmp_path / 'masks/a.png'))['gt_seg_map']
        == 255
    )
    for colours, words in [
        (dict(a=(0, 0, 0), b=(0, 0, 0)), 'each once'),
        (dict(a=(0, 0)), 'not red, green and blue'),
        (dict(a=(0, 0, 256)), 'not red, green and blue'),
        ({}, 'must be red, green'),
    ]:
        with pytest.raises(UserError, match=words):
            recognise(tmp_path, colours=colours)
    refuses(tmp_path, 'has mode RGB, but a mask must have one 8-bit label per pixel: for colours, set colours=')
    write(tmp_path / 'colours.txt', 'sky 0 0\n')
    refuses(tmp_path / 'colours.txt', 'neither a CSV')
    with pytest.raises(UserError, match='line 1 is not of the form: name r g b'):
        recognise(tmp_path)
    with pytest.raises(UserError, match='give a colour of each'):
        recognise(tmp_path, classes=['sky'], colours=COLOURS)
    with pytest.raises(MissingFileError):
        recognise(tmp_path, colours='none.txt')
    write(tmp_path / 'masks/a.png', np.array([[0, 255]], np.uint8))
    refuses(tmp_path, 'has masks of 0 and 255')


BOXES = strategies.tuples(*[strategies.integers(0, 9)] * 4)


def annotate(root, boxes, forms, folder, name, places):
    """Write an image with boxes as polygons and run lengths, and return the mask that they mean."""
    annotations = []
    labels, areas = np.zeros((10, 12), np.uint8), []
    for index, ((top, height, left, width), form) in enumerate(zip(boxes, forms)):
        bottom, right = min(top + height + 1, 10), min(left + width + 1, 12)
        inside = np.zeros((10, 12), bool)
        inside[top:bottom, left:right] = True
        segmentation = [[left, top, right, top, right, bottom, left, bottom]]
        if form != 'polygon':
            flat = inside.T.ravel()
            counts = [len([*group]) for _, group in groupby(flat.tolist())]
            counts = counts if not flat[0] else [0, *counts]
            segmentation = dict(size=[10, 12], counts=counts if form == 'counts' else encode_counts(counts))
        label = index % 2
        annotations.append(dict(id=index, image_id=7, category_id=[9, 4][label], segmentation=segmentation))
        areas.append((int(inside.sum()), label, inside))
    for _, label, inside in sorted(areas, key=lambda each: -each[0]):
        labels[inside] = [2, 1][label]
    content = dict(
        images=[dict(id=7, file_name='a.png', height=10, width=12)],
        annotations=annotations,
        categories=[dict(id=9, name='dog'), dict(id=4, name='cat')],
    )
    write(root / places / 'a.png', np.zeros((10, 12, 3), np.uint8))
    write(root / folder / name, json.dumps(content))
    return labels


def encode_counts(counts):
    """Run lengths as COCO compresses them."""
    letters = []
    for index, count in enumerate(counts):
        value = count - (counts[index - 2] if index > 2 else 0)
        while True:
            bits, value = value & 31, value >> 5
            is_last = value == (-1 if bits & 16 else 0)
            letters.append(chr(48 + (bits if is_last else bits | 32)))
            if is_last:
                break
    return ''.join(letters)


COCO_LAYOUTS = {
    'beside': ('', 'labels.json', 'images'),
    'annotations': ('annotations', 'instances_train2017.json', 'train2017'),
    'Roboflow': ('train', '_annotations.coco.json', 'train'),
    'in a folder': ('', 'train.json', 'images/train'),
}


@few
@given(
    strategies.lists(BOXES, min_size=1, max_size=6),
    strategies.lists(strategies.sampled_from(['polygon', 'counts', 'text']), min_size=6, max_size=6),
    strategies.sampled_from([*COCO_LAYOUTS.values()]),
)
def test_annotations_of_coco(tmp_path_factory, boxes, forms, layout):
    root = tmp_path_factory.mktemp('coco')
    folder, name, place = layout
    labels = annotate(root, boxes, forms, folder, name, place)
    for path in (root, root / folder / name if folder != 'train' else root):
        found = recognise(path)
        assert (found.kind, found.task) == ('images and COCO annotations', 'segmentation')
        assert found.datasets['train']['metainfo']['classes'] == ['background', 'cat', 'dog']
        options = dict(found.datasets['train'], serialize_data=False)
        assert options.pop('type') == 'vt.CocoMasks'
        built = vt.CocoMasks(**options)
        assert np.array_equal(vt.LoadCocoMasks()(built[0])['gt_seg_map'], labels)


def test_splits_of_coco_and_its_check(tmp_path):
    boxes = [(0, 8, 0, 11), (2, 3, 2, 3), (5, 1, 5, 1)]
    for split in ('train', 'val'):
        labels = annotate(
            tmp_path, boxes, ['polygon', 'counts', 'text'], 'annotations', f'instances_{split}.json', f'{split}2017'
        )
    found = recognise(tmp_path)
    assert [*found.datasets] == ['train', 'val']
    assert found.datasets['val']['data_prefix'] == dict(img_path='val2017')
    assert np.array_equal(masks_of(found)['a'], labels)


COCO = dict(
    images=[dict(id=1, file_name='a.png', height=4, width=4)], annotations=[], categories=[dict(id=1, name='x')]
)


TRIANGLE = dict(image_id=1, category_id=1, segmentation=[[0, 0, 4, 0, 4, 2]])


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (dict(annotations=[dict(image_id=1, category_id=1, bbox=[0, 0, 1, 1])]), 'has no polygons or run lengths'),
        (dict(images=[]), 'lists no images'),
        (dict(images=[dict(id=1)]), 'has images without file_name'),
        (dict(categories=[dict(id=1, name='x'), dict(id=2, name='x')]), 'two categories with the same name'),
        (dict(annotations=3), 'is damaged'),
        (dict(annotations=[TRIANGLE | dict(image_id=2)]), 'annotation 0 has no image'),
        (dict(annotations=[TRIANGLE | dict(category_id=2)]), 'annotation 0 has no category'),
        (dict(annotations=[TRIANGLE | dict(segmentation=[[0, 0, 1, 1]])]), 'at least three points'),
        (dict(annotations=[TRIANGLE | dict(segmentation=dict(size=[4, 4], counts=[9]))]), 'must cover'),
        (dict(annotations=[TRIANGLE | dict(segmentation=dict(size=[4, 4], counts='~~'))]), 'must cover'),
        (dict(images=[dict(id=1, file_name='a.png', height=5, width=4)]), 'but is annotated with 5x4'),
    ],
)
def test_annotations_of_coco_that_do_not_fit(tmp_path, change, words):
    write(tmp_path / 'a.png')
    write(tmp_path / 'all.json', json.dumps(COCO | dict(annotations=[TRIANGLE]) | change))
    with pytest.raises(UserError, match=words) as caught:
        masks_of(recognise(tmp_path))
    assert '\n' not in str(caught.value)
