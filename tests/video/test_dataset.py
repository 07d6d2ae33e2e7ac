"""The three layouts of videos: lists, class folders, Kinetics."""

from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import DATASETS
from tool_runner import ROOT
from video.written_videos import draw, write

from vt.errors import UserError
from vt.video.dataset import VideoDataset

HEADER = 'label,youtube_id,time_start,time_end,split\n'
ROWS = 'tap dancing,abc-_123XYZ,10,20,train\nabseiling,def,0,9.5,train\n'
STEMS = ('abc-_123XYZ_000010_000020', 'def_000000_000009')


def listed(dataset):
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return [(Path(info['img_path']).name, info.get('gt_label')) for info in infos]


def test_class_folders(tmp_path):
    for name in ('dog/a.mp4', 'cat/b.MKV', 'cat/deep/c.webm', 'cat/notes.txt'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b'')
    dataset = VideoDataset(str(tmp_path))
    assert dataset.metainfo['classes'] == ('cat', 'dog')
    assert sorted(listed(dataset)) == [('a.mp4', 1), ('b.MKV', 0), ('c.webm', 0)]


def test_a_list(tmp_path):
    (tmp_path / 'list.txt').write_text('b c.mp4 1\n./a.mp4 0\n')
    options = dict(data_root=str(tmp_path), data_prefix='videos', ann_file='list.txt')
    assert listed(VideoDataset(**options)) == [('b c.mp4', 1), ('a.mp4', 0)]
    for text in ('b c.mp4,1\r\n\r\na.mp4, 0\r\n', '\ufeff"b c.mp4"\t1\n./a.mp4;0'):
        (tmp_path / 'list.csv').write_text(text)
        assert listed(VideoDataset(**options | dict(ann_file='list.csv'))) == [('b c.mp4', 1), ('a.mp4', 0)]
    for text in ('path,label\na.mp4,1\n', 'a.mp4 dog\n', 'a.mp4\n'):
        (tmp_path / 'list.txt').write_text(text)
        with pytest.raises(UserError, match=r"list\.txt, line 1 is '.*': a line must be a path and a class index"):
            VideoDataset(**options)
    (tmp_path / 'list.txt').write_text(HEADER.replace('label,', '') + 'abc,1,2,test\n')
    with pytest.raises(UserError, match='list of Kinetics without the columns label'):
        VideoDataset(**options)
    (tmp_path / 'list.txt').write_text('b c.mp4\n')
    assert listed(VideoDataset(**options, with_label=False)) == [('b c.mp4', None)]


def test_videos_of_kinetics_that_are_not_there_are_left_out(tmp_path):
    (tmp_path / 'train.csv').write_text(HEADER + ROWS)
    options = dict(data_root=str(tmp_path), data_prefix='train', ann_file='train.csv')
    with pytest.raises(UserError, match=r'2 of 2 videos of .*train\.csv are not in .*train.*: correct data_root'):
        VideoDataset(**options)
    (tmp_path / 'train').mkdir()
    (tmp_path / 'train' / f'{STEMS[1]}.mp4').write_bytes(b'')
    assert listed(VideoDataset(**options)) == [(f'{STEMS[1]}.mp4', 0)]
    with pytest.raises(UserError, match=r"train\.csv has the label 'tap dancing', which is not a class"):
        VideoDataset(**options, classes=['abseiling'])


@pytest.mark.parametrize('folders', [('', ''), ('tap dancing', 'abseiling'), ('tap_dancing', '1')])
def test_kinetics_in_class_folders_or_not(folders, tmp_path):
    (tmp_path / 'train.csv').write_text(HEADER + '\n  \n' + ROWS.replace('\n', '\n\n'))  # empty lines are left out
    for folder, stem, suffix in zip(folders, STEMS, ('.mp4', '.webm')):
        (tmp_path / 'train' / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / 'train' / folder / f'{stem}{suffix}').write_bytes(b'')
    options = dict(data_root=str(tmp_path), data_prefix='train', ann_file='train.csv')
    dataset = VideoDataset(**options)
    assert dataset.metainfo['classes'] == ('abseiling', 'tap dancing')
    assert listed(dataset) == [(f'{STEMS[0]}.mp4', 1), (f'{STEMS[1]}.webm', 0)]
    more = VideoDataset(**options, classes=['abseiling', 'archery', 'tap dancing'])
    assert [label for _, label in listed(more)] == [2, 0]
    assert [label for _, label in listed(VideoDataset(**options, with_label=False))] == [None, None]


def test_the_kinetics_config_loads_a_video(tmp_path):
    cfg = Config.fromfile(ROOT / 'configs/_base_/datasets/kinetics400.py')
    (tmp_path / 'train.csv').write_text(HEADER + ROWS)
    (tmp_path / 'val.csv').write_text(HEADER + ROWS)
    shapes = dict(train=(3, 16, 224, 224), val=(3, 16, 224, 224), test=(5, 3, 16, 224, 224))
    for folder in ('train', 'val'):
        write(tmp_path / folder / f'{STEMS[0]}.mp4', draw(70))
    for split, shape in shapes.items():
        with DATASETS.switch_scope_and_registry('mmpretrain'):
            dataset = DATASETS.build(cfg[f'{split}_dataloader'].dataset | dict(data_root=str(tmp_path)))
        assert len(dataset) == 1  # the other one is gone
        assert dataset[0]['inputs'].shape == shape
    assert cfg.data_preprocessor.num_classes == 400
