"""Video files that are none, lists that don't fit, clips that are too long: one line that names the file."""

import json
from importlib.util import find_spec

import pytest
from bad_input.kept_run import assert_refused, train
from forked_tools import run_forked
from tool_runner import ROOT
from video.written_videos import draw, write

VIDEOS = f"""
_base_ = '{ROOT}/tests/video/files.py'
train_dataloader = dict(num_workers=0, persistent_workers=False)
train_cfg = dict(max_epochs=1)
"""
LISTED = VIDEOS + "train_dataloader.update(dataset=dict(ann_file='list.txt'))\n"
KINETICS = VIDEOS + "train_dataloader.update(dataset=dict(ann_file='train.csv'))\n"
STEP = 'train_dataloader.dataset.pipeline.0'
HEADER = 'label,youtube_id,time_start,time_end,split\n'


@pytest.fixture
def folder(tmp_path):
    """Two videos of each of two classes, in ``data/videos``."""
    for index in range(4):
        write(tmp_path / f'data/videos/{("cat", "dog")[index % 2]}/{index}.avi', draw(20), 'MJPG')
    return tmp_path


def cut(path):
    write(path, draw(40), 'MJPG')
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


FILES = {
    'text': (lambda path: path.write_bytes(b'this is no video, whatever its name says\n'), 'finds no video in it'),
    'zero bytes': (lambda path: path.write_bytes(b''), 'finds no video in it'),
    'no frames': (lambda path: write(path, [], 'MJPG'), 'no '),
    'cut off': (cut, 'of its 40 frames: it is damaged or cut off'),
}


@pytest.mark.parametrize('kind', FILES)
def test_a_bad_file_is_named_before_training(kind, folder, kept):
    spoil, message = FILES[kind]
    spoil(folder / 'data/videos/dog/bad.avi')
    result = train(folder, VIDEOS, '--work-dir', kept)
    assert_refused(result, 'train data: data/videos/dog/bad.avi cannot be read: ', kept)
    assert message in result.stderr


@pytest.mark.parametrize('workers', [0, 1])
def test_a_bad_file_is_named_while_training(workers, folder, kept):
    cut(folder / 'data/videos/dog/bad.avi')
    options = [f'train_dataloader.num_workers={workers}', f'{STEP}.frame_stride=13']
    options += ['train_dataloader.sampler.num_repeats=1', 'default_hooks.checkpoint=None']
    result = train(folder, VIDEOS, '--work-dir', kept, '--skip-data-check', options=options)
    assert_refused(result, 'data/videos/dog/bad.avi cannot be loaded: it has only 14 of its 40 frames', kept)


LISTS = {
    'missing': (
        'cat/0.avi 0\ncat/gone.avi 1\n',
        '1 of 2 listed videos do not exist, the first is data/videos/cat/gone.avi',
    ),
    'label outside': ('cat/0.avi 0\ndog/1.avi 2\n', 'list.txt, line 2 has the label 2, outside the 2 classes'),
    'label in words': ('cat/0.avi cat\n', "list.txt, line 1 ends in 'cat', which is not a label"),
    'no label': ('cat/0.avi\n', 'without a label'),
    'empty': ('', 'list.txt is empty'),
}


@pytest.mark.parametrize('kind', LISTS)
def test_a_bad_list(kind, folder, kept):
    content, message = LISTS[kind]
    (folder / 'data/list.txt').write_text(content)
    assert_refused(train(folder, LISTED, '--work-dir', kept), message, kept)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'train.csv is empty'),
        ('path,label\na,b\n', 'train.csv, line 1 has no column youtube_id'),
        (HEADER + 'cat,abc,x,10,train\n', "train.csv, line 2 has time_start='x'"),
        (HEADER + 'cat,abc,0,10,train\n', 'videos do not exist, the first is data/videos/abc_000000_000010.mp4'),
    ],
)
def test_a_bad_list_of_kinetics(content, message, folder, kept):
    (folder / 'data/train.csv').write_text(content)
    assert_refused(train(folder, KINETICS, '--work-dir', kept), message, kept)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ([f'{STEP}.decoder=ffmpeg'], "decoder='ffmpeg' is none of opencv, pyav"),
        pytest.param(
            [f'{STEP}.decoder=pyav'], "decoder='pyav' is not installed: install av",
            marks=pytest.mark.skipif(find_spec('av') is not None, reason='it is there'),
        ),
        ([f'{STEP}.clip_length=0'], 'clip_length=0 must be a whole number of at least 1'),
        ([f'{STEP}.clip_lenght=4'], 'clip_lenght'),
        (
            [f'{STEP}.short_videos=refuse', f'{STEP}.frame_stride=9'],
            'data/videos/cat/0.avi cannot be read: has 20 frames, but a clip spans 28',
        ),
        (['train_dataloader.dataset.data_prefix=nowhere'], 'there is no data/nowhere'),
        (['train_dataloader.dataset.data_prefix=empty'], 'the train split is empty: no videos in data/empty'),
        (['train_dataloader.dataset.data_prefix=images'], 'data/images has no videos: no file ends in .3gp'),
        (['model.head.num_classes=3', 'data_preprocessor.num_classes=3'], 'the VideoDataset data set has 2 classes'),
    ],
)  # fmt: skip
def test_wrong_settings_and_folders(options, message, folder, kept):
    (folder / 'data/empty/cat').mkdir(parents=True)
    (folder / 'data/images/cat').mkdir(parents=True)
    (folder / 'data/images/cat/a.jpg').write_bytes(b'')
    assert_refused(train(folder, VIDEOS, '--work-dir', kept, options=options), message, kept)


def test_check_dataset_lists_every_bad_video(folder):
    for kind, (spoil, _) in FILES.items():
        spoil(folder / f'data/videos/cat/{kind}.avi')
    (folder / 'config.py').write_text(VIDEOS)
    result = run_forked('check_dataset.py', 'config.py', '--splits', 'train', '--out', 'report.json', cwd=folder)
    assert result.returncode == 1
    report = json.loads((folder / 'report.json').read_text())
    assert report['counts'] == dict(unreadable=4, duplicate=2)  # the videos of both classes are the same
    unreadable = {problem['file'] for problem in report['problems'] if problem['kind'] == 'unreadable'}
    assert unreadable == {f'data/videos/cat/{kind}.avi' for kind in FILES}
    assert report['data_sets'][0]['samples'] == 8
    (folder / 'data/list.txt').write_text('cat/0.avi 0\ncat/0.avi 5\ncat/0.avi\n')
    (folder / 'config.py').write_text(LISTED)
    result = run_forked('check_dataset.py', 'config.py', '--splits', 'train', cwd=folder)
    assert (result.returncode, result.stdout.count('list.txt, line')) == (1, 2)
