"""Video files that are none, lists that don't fit, clips that are too long: one line that names the file."""

import json

import pytest
from bad_input.small_runs import refuse, train
from tool_runner import ROOT, assert_one_line, call
from video.written_videos import draw, write

VIDEOS = f"""
_base_ = '{ROOT}/tests/video/files.py'
train_dataloader = dict(num_workers=0, persistent_workers=False)
train_cfg = dict(max_epochs=1)
"""
STEP = 'train_dataloader.dataset.pipeline.0'


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


@pytest.mark.parametrize('kind', ['text', 'cut off'])
def test_a_bad_file_is_named_before_training(kind, folder):
    spoil, message = FILES[kind]
    spoil(folder / 'data/videos/dog/bad.avi')
    line = refuse(folder, VIDEOS)
    assert 'train data: data/videos/dog/bad.avi cannot be read: ' in line
    assert message in line


def test_a_bad_file_is_named_while_training(folder):
    cut(folder / 'data/videos/dog/bad.avi')
    options = ['train_dataloader.num_workers=1', f'{STEP}.frame_stride=13']
    options += ['train_dataloader.sampler.num_repeats=1', 'default_hooks.checkpoint=None']
    result = train(folder, VIDEOS, '--skip-data-check', options=options)
    assert_one_line(result, 'data/videos/dog/bad.avi cannot be loaded: it has only 14 of its 40 frames')


def test_check_dataset_lists_every_bad_video(folder):
    for kind, (spoil, _) in FILES.items():
        spoil(folder / f'data/videos/cat/{kind}.avi')
    (folder / 'config.py').write_text(VIDEOS)
    result = call('check_dataset.py', 'config.py', '--splits', 'train', '--out', 'report.json', cwd=folder)
    assert result.returncode == 1
    report = json.loads((folder / 'report.json').read_text())
    assert report['counts'] == dict(unreadable=4, contradiction=2)  # the videos of both classes are the same
    unreadable = {problem['file'] for problem in report['problems'] if problem['kind'] == 'unreadable'}
    assert unreadable == {f'data/videos/cat/{kind}.avi' for kind in FILES}
    assert report['data_sets'][0]['samples'] == 8
