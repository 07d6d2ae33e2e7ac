"""Data sets that Hugging Face's library reads: every layout, offline, mapped, as the libraries' pipelines take them."""

import json
import pickle
import socket
from collections import Counter

import datasets
import numpy as np
import pyarrow
import pytest
from datasets import Dataset
from forked_tools import run_forked
from hugging_face_data import CLASSES, MASK_CLASSES, SPLITS, encode, make_image, make_mask, make_rows, make_splits
from tool_runner import ROOT, succeed
from video.written_videos import draw, write

import vt
from vt.commands.check_dataset import read_data
from vt.data_checks.data import check_data, find_sources
from vt.datasets.table_dataset import RowsBackend
from vt.engine.config.data import Data
from vt.engine.config.steps import read_config
from vt.errors import UserError

LOAD = [dict(type='mmpretrain.LoadImageFromFile'), dict(type='mmpretrain.PackInputs')]
LOAD_MASK = [dict(type='mmseg.LoadImageFromFile'), dict(type='mmseg.LoadAnnotations'), dict(type='mmseg.PackSegInputs')]


@pytest.fixture(scope='module')
def layouts(tmp_path_factory):
    """The same data set with its splits, and each split by itself."""
    folder = tmp_path_factory.mktemp('data sets')
    splits = make_splits()
    splits.save_to_disk(folder / 'saved', num_shards=dict.fromkeys(splits, 2))
    for split, rows in splits.items():
        rows.save_to_disk(folder / 'of one split' / split)
    datasets.Dataset.from_dict(dict(image=[b'a'])).save_to_disk(folder / 'damaged')
    datasets.Dataset.from_dict({}, split='validation').save_to_disk(folder / 'stated')
    (folder / 'damaged/data-00000-of-00001.arrow').write_bytes(b'ARROW1')
    return folder


@pytest.mark.parametrize('root', ['saved', 'of one split/validation'])
def test_every_layout_gives_the_same_samples_and_nothing_is_fetched(root, layouts, monkeypatch):
    def refuse(*_):
        raise AssertionError('it asks a server')

    monkeypatch.setattr(socket.socket, 'connect', refuse)
    dataset = vt.HuggingFaceDataset(f'{layouts}/{root}', 'validation', pipeline=LOAD)
    seeds = SPLITS['validation']
    for sample, seed in zip(dataset, seeds, strict=True):
        assert np.array_equal(sample['inputs'].permute(1, 2, 0), make_image(seed))
        assert int(sample['data_samples'].gt_label) == seed % 3
        assert sample['data_samples'].img_path.startswith('rows://')
    assert dataset.metainfo['classes'] == tuple(CLASSES)
    assert dataset.get_gt_labels().tolist() == [seed % 3 for seed in seeds]


def test_images_stay_in_their_files_and_a_process_is_handed_where_these_are(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    rows = Dataset.from_dict(dict(image=[encode(image) for _ in range(100)], label=[0] * 100))
    rows.cast_column('image', datasets.Image()).save_to_disk(tmp_path)
    size = sum(path.stat().st_size for path in tmp_path.glob('*.arrow'))
    assert size > 10_000_000
    before = pyarrow.total_allocated_bytes()
    dataset = vt.HuggingFaceDataset(str(tmp_path), pipeline=LOAD)
    assert pyarrow.total_allocated_bytes() - before < size / 20
    assert dataset.metainfo.get('classes') is None  # labels are whole numbers without names
    handed = pickle.dumps(dataset)
    assert len(handed) < 50_000
    RowsBackend.columns.clear()  # as in a process that has opened nothing
    assert np.array_equal(pickle.loads(handed)[99]['inputs'].permute(1, 2, 0), image)


@pytest.mark.parametrize('feature', [datasets.Video(decode=False), datasets.Value('binary')])
def test_videos_have_the_frames_of_their_files(feature, tmp_path):
    contents = [write(tmp_path / f'{shade}.avi', draw(9, shade), 'FFV1').read_bytes() for shade in (0, 50)]
    values = [dict(bytes=each, path=None) if hasattr(feature, 'decode') else each for each in contents]
    names = datasets.ClassLabel(names=['a', 'b'])
    features = datasets.Features(video=feature, label=names)
    Dataset.from_dict(dict(video=values, label=[1, 0]), features=features).save_to_disk(tmp_path / 'own')
    load = [dict(type='vt.LoadClips', clip_length=4, frame_stride=2, num_clips=1)]
    dataset = vt.HuggingFaceDataset(str(tmp_path / 'own'), image='video', pipeline=load)
    for sample, shade, label in zip(dataset, (0, 50), (1, 0)):
        assert np.array_equal(sample['frames'], draw(9, shade)[1:8:2])
        assert sample['gt_label'] == label


def test_masks_are_read_as_files_are(layouts):
    options = dict(data_root=f'{layouts}/saved', split='validation')
    dataset = vt.HuggingFaceSegDataset(**options, classes=MASK_CLASSES, pipeline=LOAD_MASK)
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
    with pytest.raises(UserError, match='requires class names for its masks: set classes'):
        vt.HuggingFaceSegDataset(**options)


SAVED = dict(data_root='{}/saved')
BAD = {
    'not here': (dict(data_root='nowhere/at/all'), 'there is no nowhere/at/all/state.json; data_root must be a folder'),
    'damaged': (dict(data_root='{}/damaged'), 'damaged is damaged: ArrowInvalid'),
    'no split': (dict(SAVED, split='val'), "has no split 'val'; its splits are train, validation"),
    'another split': (dict(data_root='{}/stated'), "is the split 'validation', not 'train'"),
    'no column': (dict(SAVED, image='img'), "there is no column 'img'; the columns are image, mask, label, shown"),
    'too few classes': (dict(SAVED, classes=['cat', 'dog']), 'train/label/2 is 2, not one of the 2 classes'),
}


@pytest.mark.parametrize('kind', BAD)
def test_what_can_not_be_opened_is_one_line(kind, layouts):
    options, message = BAD[kind]
    options = {key: value.format(layouts) if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(UserError) as error:
        vt.HuggingFaceDataset(**options)
    assert message in str(error.value)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('labels', 'message'),
    [
        ([0, -1], 'label/1 is -1, not an integer from 0'),
        ([0, None], 'label is of type int64, with 1 nulls, but labels must be integers'),
        (['b', 'a'], 'label is of type string, .*: cast the column to ClassLabel'),
    ],
)
def test_labels_that_are_none_are_one_line(labels, message, tmp_path):
    Dataset.from_dict(dict(image=[encode(make_image(0))] * 2, label=labels)).save_to_disk(tmp_path / 'own')
    with pytest.raises(UserError, match=message):
        vt.HuggingFaceDataset(str(tmp_path / 'own'))
    assert 'gt_label' not in vt.HuggingFaceDataset(str(tmp_path / 'own'), label=None).get_data_info(0)


CONFIG = f"""
_base_ = '{ROOT}/configs/vt_resnet/vt-resnet18_1xb32-90e_hugging-face.py'
model = dict(head=dict(num_classes=3))
"""
SMALL = """
train_dataloader = val_dataloader = test_dataloader = dict(batch_size=4, num_workers=0)
train_cfg = dict(max_epochs=1)
model['head'].update(in_channels=32)
model.update(backbone=dict(base_channels=16, num_tokens=4, token_channels=32))
"""
MASKS = f"""
_base_ = '{ROOT}/configs/vt_fpn/vt-fpn_r50_1xb4-80k_hugging-face-512x512.py'
train_dataloader = val_dataloader = test_dataloader = dict(dataset=dict(classes={MASK_CLASSES}))
model = dict(decode_head=dict(num_classes=3))
"""


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
    check_data(Data(read(MASKS, tmp_path, layouts / 'saved')), ('train', 'val'))
    cfg = read(MASKS, tmp_path, tmp_path / 'own')
    with pytest.raises(UserError, match=r'own/train/mask/1 has the label 3, outside the 3 classes .* \(and 1 more'):
        check_data(Data(cfg), ('train',))
    report = read_data(Data(cfg), ('train', 'val'), threads=2)[0]
    assert report['counts'] == dict(duplicate=2, label=1, mode=1, values=1)
    (problem,) = [problem for problem in report['problems'] if problem['kind'] == 'mode']
    assert problem['file'].endswith('/own/train/mask/2')


def test_rows_are_checked_without_a_sample_of_each(layouts, tmp_path, monkeypatch):
    monkeypatch.setattr('vt.data_checks.data.SECONDS', 0)
    cfg = read(CONFIG, tmp_path, layouts / 'saved')
    ((source,), _) = find_sources(Data(cfg), ('train',))
    source.look(1, whole=False)
    assert source.samples == {}
    assert source.labels.counts == Counter(seed % 3 for seed in SPLITS['train'])
    assert source.labels.total == len(SPLITS['train'])
    assert not any('same image' in line for line in check_data(Data(cfg), ('train', 'val')))
    for train, val in ((None, 3), (None, [0, 1, 2]), ([0, 1, 2], None), ([0, 1, 2], [2, 1, 0])):  # indices of one split
        cfg.train_dataloader.dataset.indices = train
        cfg.val_dataloader.dataset.update(split='train', indices=val)
        (line,) = [line for line in check_data(Data(cfg), ('train', 'val')) if 'same image' in line]
        number = len(SPLITS['train']) if val is None else 3
        assert line.endswith(f'the score of 3 of {number} has no meaning (and 2 more)')


def test_a_run_trains_resumes_and_is_tested_on_rows(layouts, tmp_path):
    (tmp_path / 'config.py').write_text(CONFIG + SMALL)
    common = dict(cwd=tmp_path, options=[f'data_root={layouts / "saved"}'])
    succeed(run_forked('train.py', 'config.py', **common))
    common['options'].append('train_cfg.max_epochs=2')
    succeed(run_forked('train.py', 'config.py', '--resume', **common))
    succeed(run_forked('test.py', 'config.py', 'work_dirs/config/epoch_2.pth', '--out', 'scores.json', **common))
    assert 0 <= json.loads((tmp_path / 'scores.json').read_text())['accuracy/top1'] <= 100


@pytest.mark.parametrize('column', ['image', 'mask'])
def test_a_row_without_image_or_mask_is_named_when_the_data_set_is_opened(column, tmp_path):
    rows = make_rows(range(4))
    values = rows.to_dict() | {column: [*rows.to_dict()[column][:2], None, dict(bytes=b'', path=None)]}
    Dataset.from_dict(values, features=rows.features).save_to_disk(tmp_path / 'own')
    kind = vt.HuggingFaceDataset if column == 'image' else vt.HuggingFaceSegDataset
    options = {} if column == 'image' else dict(classes=MASK_CLASSES)
    with pytest.raises(UserError, match=f'own/{column}/2 is null or empty, as are 2 of 4 rows: remove them'):
        kind(str(tmp_path / 'own'), **options)
