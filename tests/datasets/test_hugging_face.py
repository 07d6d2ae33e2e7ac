"""Data sets that Hugging Face's library reads: every layout, offline, mapped, as the libraries' pipelines take them."""

import pickle
import shutil
import socket
import sys
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pyarrow
import pytest
from datasets import Dataset
from forked_tools import run_forked
from hugging_face_data import (
    CLASSES,
    MASK_CLASSES,
    SPLITS,
    encode,
    make_image,
    make_mask,
    make_rows,
    make_splits,
    write_folder,
)
from run_comparison import assert_same_end
from small_image_config import SMALL_IMAGES
from tool_runner import ROOT, assert_one_line
from video.written_videos import draw, write

import vt
from vt.data_checks.data import check_data
from vt.data_checks.data_report import read_data
from vt.datasets.rows import RowsBackend
from vt.engine.config_files import read_config
from vt.engine.interruption.seeds import SeededDataset
from vt.errors import MissingFileError, UserError

LOAD = [dict(type='mmpretrain.LoadImageFromFile'), dict(type='mmpretrain.PackInputs')]
LOAD_MASK = [dict(type='mmseg.LoadImageFromFile'), dict(type='mmseg.LoadAnnotations'), dict(type='mmseg.PackSegInputs')]


@pytest.fixture(scope='module')
def layouts(tmp_path_factory):
    """The same data set in every layout, by its name; the last one lies in the library's cache alone."""
    folder = tmp_path_factory.mktemp('data sets')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, 'HF_DATASETS_CACHE', folder / 'cache')
        splits = make_splits()
        splits.save_to_disk(folder / 'saved')
        (folder / 'arrow').mkdir()
        (folder / 'parquet').mkdir()
        (folder / 'v[1]').mkdir()
        for split, rows in splits.items():
            rows.save_to_disk(folder / 'of one split' / split)
            (stored,) = (folder / 'saved' / split).glob('*.arrow')
            (folder / f'arrow/pets-{split}.arrow').write_bytes(stored.read_bytes())
            rows.to_parquet(folder / f'parquet/{split}-00000-of-00001.parquet')
        write_folder(folder / 'images')
        (folder / 'empty').mkdir()
        (folder / 'damaged.parquet').write_bytes(b'PAR1')
        cached = folder / 'cache/me___pets/default/0.0.0/0123456789abcdef'
        files = {split: str(folder / f'parquet/{split}-00000-of-00001.parquet') for split in SPLITS}
        datasets.load_dataset_builder('parquet', data_files=files).download_and_prepare(str(cached))
        for path in cached.glob('parquet-*'):
            path.rename(path.with_name(path.name.replace('parquet', 'pets')))
        yield folder


PLACES = {
    'saved': dict(data_root='{}/saved', split='validation'),
    'saved without splits': dict(data_root='{}/of one split/validation', split='validation'),
    'Arrow file': dict(data_root='{}/arrow/pets-validation.arrow'),
    'Arrow files': dict(data_root='{}/arrow', split='validation'),
    'Parquet file': dict(data_root='{}/parquet/validation-00000-of-00001.parquet'),
    'Parquet files': dict(data_root='{}/parquet', split='validation'),
    'part of a split': dict(data_root='{}/parquet', split='train[2:6]'),
    'images': dict(data_root='{}/images', split='validation'),
    'cached': dict(data_root='me/pets', split='validation'),
}


@pytest.mark.parametrize('place', PLACES)
def test_every_layout_gives_the_same_samples_and_nothing_is_fetched(place, layouts, monkeypatch):
    def refuse(*_):
        raise AssertionError('it asks a server')

    monkeypatch.setattr(socket.socket, 'connect', refuse)
    options = {key: value.format(layouts) for key, value in PLACES[place].items()}
    dataset = vt.HuggingFaceDataset(**options, pipeline=LOAD)
    seeds = SPLITS['train'][2:6] if place == 'part of a split' else SPLITS['validation']
    found = {dataset[index]['inputs'].permute(1, 2, 0).numpy().tobytes(): index for index in range(len(dataset))}
    assert found.keys() == {make_image(seed).tobytes() for seed in seeds}
    for seed in seeds:  # a folder of images goes by classes
        sample = dataset[found[make_image(seed).tobytes()]]['data_samples']
        assert int(sample.gt_label) == seed % 3
        assert Path(sample.img_path).is_file() if place == 'images' else sample.img_path.startswith('rows://')
    assert dataset.metainfo['classes'] == tuple(CLASSES)
    assert sorted(dataset.get_gt_labels()) == sorted(seed % 3 for seed in seeds)
    assert not datasets.config.HF_HUB_OFFLINE


def test_images_stay_in_their_files_and_a_process_is_handed_where_these_are(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    rows = Dataset.from_dict(dict(image=[encode(image) for _ in range(100)], label=[0] * 100))
    rows.cast_column('image', datasets.Image()).save_to_disk(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.glob('*.arrow'))
    assert size > 10_000_000
    before = pyarrow.total_allocated_bytes()
    dataset = vt.HuggingFaceDataset(str(tmp_path), pipeline=LOAD)
    assert pyarrow.total_allocated_bytes() - before < size / 20
    handed = pickle.dumps(dataset)
    assert len(handed) < 50_000
    RowsBackend.columns.clear()  # as in a process that has opened nothing
    assert np.array_equal(pickle.loads(handed)[99]['inputs'].permute(1, 2, 0), image)


def test_samples_are_made_when_they_are_asked_for(layouts):
    """In any order, of a part, of files as of rows; the labels are counted without them."""
    for root in ('saved', 'images'):
        whole = vt.HuggingFaceDataset(str(layouts / root), 'train', pipeline=LOAD).data_list
        part = vt.HuggingFaceDataset(str(layouts / root), 'train', pipeline=LOAD, indices=3).data_list
        assert [*part] == [*whole[:3]] == [whole[index] for index in range(3)]
        assert [*whole[::-2]] == [*whole][::-2]
        assert whole[1:].count_labels() == Counter(info['gt_label'] for info in [*whole][1:])
        assert bool(whole.address) == (root == 'saved')


@pytest.mark.parametrize('decoder', ['opencv', 'pyav'])
@pytest.mark.parametrize('feature', [datasets.Video(decode=False), datasets.Value('binary')])
def test_videos_have_the_frames_of_their_files(feature, decoder, tmp_path):
    contents = [write(tmp_path / f'{shade}.avi', draw(9, shade), 'FFV1').read_bytes() for shade in (0, 50)]
    values = [dict(bytes=each, path=None) if hasattr(feature, 'decode') else each for each in contents]
    names = datasets.ClassLabel(names=['a', 'b'])
    features = datasets.Features(video=feature, label=names)
    Dataset.from_dict(dict(video=values, label=[1, 0]), features=features).save_to_disk(tmp_path / 'own')
    load = [dict(type='vt.LoadClips', clip_length=4, frame_stride=2, num_clips=1, decoder=decoder)]
    dataset = vt.HuggingFaceDataset(str(tmp_path / 'own'), image='video', pipeline=load)
    for sample, shade, label in zip(dataset, (0, 50), (1, 0)):
        assert np.array_equal(sample['frames'], draw(9, shade)[1:8:2])
        assert sample['gt_label'] == label


@pytest.mark.parametrize('kind', ['bytes', 'paths', 'struct'])
def test_images_that_no_features_describe(kind, tmp_path):
    content, tmp_path = encode(make_image(0)), tmp_path / 'v [1]'
    tmp_path.mkdir()
    (tmp_path / 'a.png').write_bytes(content['bytes'])
    value = dict(bytes=content['bytes'], paths='a.png', struct=content)[kind]
    table = pyarrow.table(dict(image=[value], number=[4]))
    pyarrow.parquet.write_table(table, tmp_path / 'train.parquet')
    dataset = vt.HuggingFaceDataset(f'{tmp_path}/train.parquet', image='image', label='number', pipeline=LOAD)
    assert np.array_equal(dataset[0]['inputs'].permute(1, 2, 0), make_image(0))
    assert dataset.get_gt_labels() == [4]
    assert dataset.metainfo.get('classes') is None


def test_masks_are_read_as_files_are(layouts):
    options = dict(data_root=f'{layouts}/saved', split='validation')
    for classes in ('shown', MASK_CLASSES):
        dataset = vt.HuggingFaceSegDataset(**options, classes=classes, pipeline=LOAD_MASK)
        assert tuple(dataset.metainfo['classes']) == tuple(MASK_CLASSES)
        assert len(dataset.metainfo['palette']) == 3
        for sample, seed in zip(dataset, SPLITS['validation']):
            assert np.array_equal(sample['inputs'].permute(1, 2, 0), make_image(seed))
            assert np.array_equal(sample['data_samples'].gt_sem_seg.data[0], make_mask(seed))
    reduced = vt.HuggingFaceSegDataset(**options, classes=['cat', 'dog'], reduce_zero_label=True, pipeline=LOAD_MASK)
    expected = (make_mask(100).astype(int) - 1) % 256
    assert np.array_equal(reduced[0]['data_samples'].gt_sem_seg.data[0], expected)
    images = vt.HuggingFaceSegDataset(**options, mask=None, pipeline=[LOAD_MASK[0], LOAD_MASK[2]])
    assert 'gt_sem_seg' not in images[0]['data_samples']
    lazy = vt.HuggingFaceSegDataset('nowhere', classes='shown', lazy_init=True)
    assert not lazy.metainfo.get('classes')


SAVED = dict(data_root='{}/saved')
BAD = {
    'nothing named': ({}, 'set a folder or file of a data set'),
    'not here': (dict(data_root='nowhere/at/all'), 'there is no nowhere/at/all, and no data set of'),
    'not in the cache': (dict(data_root='me/other'), 'there is no me/other, and no data set of this name in the cache'),
    'another file': (dict(data_root=__file__), 'is not a file of type .arrow or .parquet'),
    'empty': (dict(data_root='{}/empty'), "doesn't contain any data files"),
    'damaged': (dict(data_root='{}/damaged.parquet'), 'could not be opened: Parquet file size is 4 bytes'),
    'no split': (dict(SAVED, split='val'), "has no split 'val': there are train, validation"),
    'no split of files': (dict(data_root='{}/parquet', split='val'), 'Unknown split "val". Should be one of'),
    'no Arrow file of a split': (dict(data_root='{}/arrow', split='test'), "no Arrow file with 'test' in its name"),
    'a part of a file': (dict(data_root='{}/arrow/pets-train.arrow', split='train[:5]'), "split='train[:5]' a part of"),
    'a name of a file': (dict(data_root='{}/arrow/pets-train.arrow', name='a'), "name='a' has no effect, since"),
    'a name of splits': (dict(SAVED, name='a'), "name='a' has no effect, since"),
    'a pattern': (dict(data_root='{}/v[1]'), 'is a pattern for datasets, which does not read such a folder: rename it'),
    'no column': (dict(SAVED, image='img'), "there is no column 'img', there are image, mask, label, shown"),
    'no images': (dict(SAVED, image='label'), 'is of type ClassLabel: encoded images'),
    'no label': (dict(SAVED, label='shown'), 'train/shown/0 is [0, 1], not '),
    'too few classes': (dict(SAVED, classes=['cat', 'dog']), 'has 3 classes, but the config has 2: remove classes'),
}


@pytest.mark.parametrize('kind', BAD)
def test_what_can_not_be_opened_is_one_line(kind, layouts):
    options, message = BAD[kind]
    options = {key: value.format(layouts) if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(UserError) as error:
        vt.HuggingFaceDataset(**options)
    assert message in str(error.value)
    assert '\n' not in str(error.value)


def test_labels_and_classes_that_are_none_are_one_line(layouts, tmp_path):
    def build(kind, labels, **options):
        Dataset.from_dict(dict(image=[encode(make_image(0))] * 2, label=labels)).save_to_disk(tmp_path / 'own')
        return kind(str(tmp_path / 'own'), **options)

    assert build(vt.HuggingFaceDataset, ['b', 'a'], classes=['a', 'b']).get_gt_labels().tolist() == [1, 0]
    with pytest.raises(UserError, match=r'has strings \(a, b\): set classes to all of them'):
        build(vt.HuggingFaceDataset, ['b', 'a'])
    for labels, options, message in (
        (['b', 'c'], dict(classes=['a', 'b']), "label/1 is 'c', not one of the 2 classes"),
        ([0, -1], {}, 'label/1 is -1, not a whole number from 0'),
        ([0, None], {}, 'label/1 is None, not a whole number from 0'),
    ):
        with pytest.raises(UserError, match=message):
            build(vt.HuggingFaceDataset, labels, **options)
    assert 'gt_label' not in build(vt.HuggingFaceDataset, [0, -1], label=None).get_data_info(0)
    options = dict(data_root=f'{layouts}/saved')
    with pytest.raises(UserError, match='has no class names for its masks'):
        vt.HuggingFaceSegDataset(**options)
    with pytest.raises(UserError, match='image has no class names: set classes to a list of names'):
        vt.HuggingFaceSegDataset(**options, classes='image')


def test_without_the_extra_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, 'datasets', None)
    with pytest.raises(UserError, match=r"needs datasets: pip install 'visual-transformers\[datasets\]'"):
        vt.HuggingFaceDataset('nowhere')
    assert vt.HuggingFaceDataset('nowhere', lazy_init=True).metainfo == {}


CONFIG = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_1xb32-90e_hugging-face.py'
{SMALL_IMAGES}"""
MASKS = f"""
_base_ = '{ROOT}/configs/vt_fpn/vt-fpn_r50_1xb4-80k_hugging-face-512x512.py'
train_dataloader = val_dataloader = test_dataloader = dict(dataset=dict(classes={MASK_CLASSES}))
model = dict(decode_head=dict(num_classes=3))
"""


def train(folder, config, *arguments, options=()):
    (folder / 'config.py').write_text(config)
    return run_forked('train.py', 'config.py', *arguments, cwd=folder, options=options)


@pytest.mark.slow
def test_a_run_that_is_resumed_ends_in_the_same_bits(layouts, tmp_path):
    options = [f'data_root={layouts}/saved']
    whole = train(tmp_path, CONFIG, '--work-dir', 'whole', options=options)
    assert whole.returncode == 0, whole.stderr
    assert 'accuracy/top1' in whole.stdout
    (tmp_path / 'cut').mkdir()
    for path in (tmp_path / 'whole').glob('*epoch_1.pth'):  # the best one too, as if it had been killed then
        shutil.copy(path, tmp_path / 'cut')
    (tmp_path / 'cut/last_checkpoint').write_text(str(tmp_path / 'cut/epoch_1.pth'))
    rest = train(tmp_path, CONFIG, '--work-dir', 'cut', '--resume', options=options)
    assert rest.returncode == 0, rest.stderr
    assert 'Epoch(train) [1]' not in rest.stdout
    assert_same_end(tmp_path / 'whole', tmp_path / 'cut')


def test_what_is_wrong_is_one_line_before_training(layouts, tmp_path):
    options = [f'data_root={layouts}/saved', 'model.head.num_classes=2', 'train_dataloader.num_workers=0']
    result = train(tmp_path, CONFIG, options=options)
    assert_one_line(result, 'the HuggingFaceDataset data set has 3 classes; set model.head.num_classes=3')
    result = train(tmp_path, CONFIG, options=['data_root=nowhere'])
    assert_one_line(result, 'there is no nowhere, and no data set of this name in the cache')


def read(text, folder, root):
    (folder / 'config.py').write_text(text)
    return read_config(str(folder / 'config.py'), dict(data_root=str(root)))


def test_masks_are_checked_before_training(layouts, tmp_path):
    rows = make_rows(range(3)).to_dict()
    rows['mask'][1] = encode(make_mask(1) + 3)
    rows['mask'][2] = encode(make_image(2))
    features = make_rows(range(1)).features
    splits = datasets.DatasetDict(train=Dataset.from_dict(rows, features=features), validation=make_rows(range(2)))
    splits.save_to_disk(tmp_path / 'own')
    check_data(read(MASKS, tmp_path, layouts / 'saved'), ('train', 'val'))
    cfg = read(MASKS, tmp_path, tmp_path / 'own')
    with pytest.raises(UserError, match=r'own/train/mask/1 has the label 3, outside the 3 classes .* \(and 1 more'):
        check_data(cfg, ('train',))
    report = read_data(cfg, ('train', 'val'), threads=2)[0]
    assert report['counts'] == dict(duplicate=2, label=1, mode=1, values=1)
    assert {problem['file'].rpartition('/own/')[2] for problem in report['problems'] if problem['kind'] == 'mode'} == {
        'train/mask/2'
    }


@pytest.mark.parametrize('nothing', [None, dict(bytes=b'', path=None)])
@pytest.mark.parametrize('column', ['image', 'mask'])
def test_a_row_without_image_or_mask_is_named_when_the_data_set_is_opened(column, nothing, tmp_path):
    rows = make_rows(range(4))
    values = rows.to_dict() | {column: [*rows.to_dict()[column][:2], nothing, nothing]}
    Dataset.from_dict(values, features=rows.features).save_to_disk(tmp_path / 'own')
    kind = vt.HuggingFaceDataset if column == 'image' else vt.HuggingFaceSegDataset
    options = {} if column == 'image' else dict(classes='shown')
    with pytest.raises(UserError, match=f'own/{column}/2 is null or empty, as are 2 of 4 rows: remove them'):
        kind(str(tmp_path / 'own'), **options)


def test_an_image_that_is_damaged_is_named(tmp_path):
    Dataset.from_dict(dict(image=[encode(make_image(0)), dict(bytes=b'none', path=None)], label=[0, 1])).save_to_disk(
        tmp_path / 'own'
    )
    dataset = SeededDataset(dict(type='vt.HuggingFaceDataset', data_root=str(tmp_path / 'own'), pipeline=LOAD))
    with pytest.raises(UserError, match='own/image/1 cannot be loaded: '):
        dataset[1]
    with pytest.raises(MissingFileError, match='is not open in this process'):
        RowsBackend().get('rows://other/train/image/1')
