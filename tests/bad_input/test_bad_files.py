"""Images, videos and checkpoints that are none: one line that names the file, before training where it can be known."""

import pytest
import torch
from bad_input.images import DAMAGED
from bad_input.small_runs import DIGITS, FOLDER, refuse, train
from tool_runner import ROOT, assert_one_line
from video.written_videos import draw, write

PILLOW = FOLDER.replace('dataset = ', "pipeline[0].update(imdecode_backend='pillow')\ndataset = ", 1)
DEEP = [('text named .jpg', FOLDER, 0), ('truncated PNG', PILLOW, 0), ('truncated JPEG', FOLDER, 2)]


@pytest.mark.parametrize(('kind', 'config', 'workers'), DEEP)
def test_a_damaged_image_is_named(kind, config, workers, folder):
    name, content = DAMAGED[kind]
    (folder / 'data/images/dog' / name).write_bytes(content)
    line = refuse(folder, config, options=[f'train_dataloader.num_workers={workers}'])
    assert f'train data: data/images/dog/{name} cannot be read: ' in line


VIDEOS = f"""
_base_ = '{ROOT}/tests/video/files.py'
train_dataloader = dict(num_workers=0, persistent_workers=False)
train_cfg = dict(max_epochs=1)
"""


@pytest.fixture
def videos(tmp_path):
    """Two videos of each of two classes, in ``data/videos``."""
    for index in range(4):
        write(tmp_path / f'data/videos/{("cat", "dog")[index % 2]}/{index}.avi', draw(20), 'MJPG')
    return tmp_path


def test_a_bad_file_is_named_before_training(videos):
    (videos / 'data/videos/dog/bad.avi').write_bytes(b'this is no video, whatever its name says\n')
    line = refuse(videos, VIDEOS)
    assert 'train data: data/videos/dog/bad.avi cannot be read: ' in line
    assert 'cannot open it as a video' in line


def test_a_bad_file_is_named_while_training(videos):
    path = write(videos / 'data/videos/dog/bad.avi', draw(40), 'MJPG')
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    options = ['train_dataloader.num_workers=1', 'train_dataloader.dataset.pipeline.0.frame_stride=13']
    options += ['train_dataloader.sampler.num_repeats=1', 'default_hooks.checkpoint=None']
    result = train(videos, VIDEOS, '--skip-data-check', options=options)
    assert_one_line(result, 'data/videos/dog/bad.avi cannot be loaded: it has only 14 of its 40 frames')


@pytest.mark.parametrize('kind', ['text', 'truncated'])
@pytest.mark.parametrize('use', ['--resume', 'load_from'])
def test_a_damaged_checkpoint(kind, use, tmp_path):
    torch.save(dict(meta={}, state_dict=dict(a=torch.ones(9))), tmp_path / 'bad.pth')
    contents = dict(text=b'no checkpoint\n', truncated=(tmp_path / 'bad.pth').read_bytes()[:-500])
    (tmp_path / 'bad.pth').write_bytes(contents[kind])
    arguments, options = (['--resume', 'bad.pth'], []) if use == '--resume' else ([], ['load_from=bad.pth'])
    assert_one_line(train(tmp_path, DIGITS, *arguments, options=options), 'bad.pth')
