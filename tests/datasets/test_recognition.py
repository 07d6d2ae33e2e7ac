"""Data at a path is recognised: data sets of any layout give the samples that were written; other data is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from mmengine.config import Config
from PIL import Image

import vt
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
    'masks in colours': (['images/a.png', 'masks/a.png'], 'mode RGB'),
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
