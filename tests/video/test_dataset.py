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


def test_a_list_and_files_that_are_not_there(tmp_path):
    (tmp_path / 'videos').mkdir()
    for name in ('a.mp4', 'b c.mp4'):
        (tmp_path / 'videos' / name).write_bytes(b'')
    (tmp_path / 'list.txt').write_text('b c.mp4 1\n./a.mp4 0\n')
    options = dict(data_root=str(tmp_path), data_prefix='videos', ann_file='list.txt')
    assert listed(VideoDataset(**options)) == [('b c.mp4', 1), ('a.mp4', 0)]
    (tmp_path / 'list.txt').write_text('a.mp4 0\ngone.mp4 1\nx/gone.mp4 1\n')
    with pytest.raises(UserError, match=r'2 of 3 listed videos do not exist, the first is .*videos/gone\.mp4: correct'):
        VideoDataset(**options)
    assert listed(VideoDataset(**options, missing='skip')) == [('a.mp4', 0)]
    (tmp_path / 'videos/a.mp4').unlink()
    with pytest.raises(UserError, match='3 of 3 listed videos'):
        VideoDataset(**options, missing='skip')
    (tmp_path / 'list.txt').write_text('b c.mp4\n')
    assert listed(VideoDataset(**options, with_label=False)) == [('b c.mp4', None)]


@pytest.mark.parametrize('folders', [('', ''), ('tap dancing', 'abseiling'), ('tap_dancing', '1')])
def test_kinetics_in_class_folders_or_not(folders, tmp_path):
    (tmp_path / 'train.csv').write_text(HEADER + ROWS)
    for folder, stem, suffix in zip(folders, STEMS, ('.mp4', '.webm')):
        (tmp_path / 'train' / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / 'train' / folder / f'{stem}{suffix}').write_bytes(b'')
    options = dict(data_root=str(tmp_path), data_prefix='train', ann_file='train.csv')
    dataset = VideoDataset(**options)
    assert dataset.metainfo['classes'] == ('abseiling', 'tap dancing')
    assert listed(dataset) == [(f'{STEMS[0]}.mp4', 1), (f'{STEMS[1]}.webm', 0)]
    more = VideoDataset(**options, classes=['abseiling', 'archery', 'tap dancing'])
    assert [label for _, label in listed(more)] == [2, 0]
    unlabelled = VideoDataset(**options, with_label=False)
    assert [label for _, label in listed(unlabelled)] == [None, None]


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('train.csv', b'', 'is empty'),
        ('train.csv', HEADER.encode(), 'is empty'),
        ('train.csv', b'youtube_id,time_start,time_end\na,0,1\n', "line 2 cannot be read as label,.*: 'label'"),
        ('train.csv', (HEADER + ROWS + 'x,y,ten,20,train\n').encode(), 'line 4 cannot be read .*ten'),
        (
            'train.csv',
            (HEADER + ROWS + 'archery,y,1,20,train\n').encode(),
            "has the label 'archery', which is no class",
        ),
        ('train.csv', (HEADER + 'x,y\n').encode(), 'line 2 cannot be read'),
        ('list.txt', b'', 'is empty'),
        ('list.txt', b'a.mp4 0\n\na.mp4 0\n', 'line 2 cannot be read as a path, a space and a number'),
        ('list.txt', b'a.mp4\n', 'line 1 cannot be read'),
        ('list.txt', b'a.mp4 cat\n', "line 1 cannot be read .*'cat'"),
        (
            'list.txt',
            b'x' * 99_999 + b' 0\n',
            r'1 of 1 listed videos do not exist, the first is .{290,300} …: correct data_root',
        ),
    ],
)
def test_a_bad_list_is_named_with_its_line(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        VideoDataset(str(tmp_path), ann_file=name, classes=['abseiling', 'tap dancing'])


def test_empty_lines_are_left_out(tmp_path):
    for stem in STEMS:
        (tmp_path / f'{stem}.MP4').write_bytes(b'')
    (tmp_path / 'train.CSV').write_text(HEADER + '\n  \n' + ROWS.replace('\n', '\n\n'))
    assert listed(VideoDataset(str(tmp_path), ann_file='train.CSV')) == [(f'{STEMS[0]}.MP4', 1), (f'{STEMS[1]}.MP4', 0)]


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(), 'set data_root'),
        (dict(data_root='flat'), 'flat/ has videos, but no class folders: move them'),
        (dict(data_root='gone'), 'there is no folder gone'),
        (dict(data_root='.', missing='ignore'), "missing='ignore' is neither 'refuse' nor 'skip'"),
        (dict(data_root='.'), r'has no videos: no file ends in \.3gp'),
    ],
)
def test_wrong_settings(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'flat').mkdir()
    if options.get('data_root') == 'flat':
        (tmp_path / 'flat/a.mp4').write_bytes(b'')
    with pytest.raises(UserError, match=message):
        VideoDataset(**options)


def test_a_sample_is_loaded(tmp_path):
    write(tmp_path / 'cat/a.mp4', draw(12))
    pipeline = [dict(type='vt.LoadClips', clip_length=4, num_clips=2), dict(type='vt.PackClips')]
    sample = VideoDataset(str(tmp_path), pipeline=pipeline)[0]
    assert sample['inputs'].shape == (2, 3, 4, 48, 64)
    assert sample['data_samples'].img_path.endswith('cat/a.mp4')


@pytest.mark.parametrize(
    ('name', 'frames'),
    [('kinetics400', 16), ('kinetics400_32x3', 32), ('kinetics400_64x3', 64), ('kinetics600_32x3', 32)],
)
def test_kinetics_configs_load_a_video(name, frames, tmp_path):
    cfg = Config.fromfile(ROOT / f'configs/_base_/datasets/{name}.py')
    (tmp_path / 'train.csv').write_text(HEADER + ROWS)
    (tmp_path / 'val.csv').write_text(HEADER + ROWS)
    shapes = dict(train=(3, frames, 224, 224), val=(3, frames, 224, 224), test=(5, 3, frames, 224, 224))
    for folder in ('train', 'val'):
        write(tmp_path / folder / f'{STEMS[0]}.mp4', draw(70))
    for split, shape in shapes.items():
        with DATASETS.switch_scope_and_registry('mmpretrain'):
            dataset = DATASETS.build(cfg[f'{split}_dataloader'].dataset | dict(data_root=str(tmp_path)))
        assert len(dataset) == 1  # the other one is gone
        assert dataset[0]['inputs'].shape == shape
    assert cfg.data_preprocessor.num_classes == int(name[8:11])


@pytest.mark.parametrize(('name', 'classes'), [('moving-digits', 8), ('moving-digits-twin', 10)])
def test_moving_digits_configs(name, classes):
    cfg = Config.fromfile(ROOT / f'configs/mvit/mvit-tiny_{name}.py')
    for loader, number in ((cfg.train_dataloader, 2048), (cfg.test_dataloader, 2048)):
        assert loader.dataset.num_videos == number
        dataset = DATASETS.build(loader.dataset | dict(num_videos=4))
        assert dataset[0]['inputs'].shape == (3, 8, 32, 32)
        assert len(dataset.metainfo['classes']) == cfg.data_preprocessor.num_classes == classes
