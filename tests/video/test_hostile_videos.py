"""Videos that are small as files and large as frames, or that say what is not so."""

import csv
import json
import struct

import cv2
import numpy as np
import pytest
from apis.small_models import make
from bad_input.hostile_images import limited_memory
from forked_tools import run_forked
from tool_runner import ROOT, assert_one_line
from video.written_videos import draw, write

from vt.errors import FileError
from vt.image_bounds import check_frames
from vt.video import LoadClips, open_video

LIMITED = ROOT / 'tests/bad_input/limited_tool.py'
MEMORY = 1_500_000_000  # bytes


def blank(path, height, width, number=4, codec='FFV1'):
    """Black frames."""
    return write(path, [np.zeros((height, width, 3), np.uint8)] * number, codec, size=(height, width))


def claim(path, place, number, kind='<I'):
    """Change a number in the header of an .avi: 'frames' in both places, 'width' and 'height'."""
    content = bytearray(write(path, draw(20), 'MJPG').read_bytes())
    main, stream, image = (content.index(name) + 8 for name in (b'avih', b'strh', b'strf'))
    places = dict(frames=(main + 16, stream + 32), width=(main + 32, image + 4), height=(main + 36, image + 8))
    for start in places[place]:
        content[start : start + 4] = struct.pack(kind, number)
    path.write_bytes(content)
    return path


def changing(path, sizes):
    """Frames of other sizes than the first one's."""
    av = pytest.importorskip('av', reason='PyAV writes such files: pip install av')
    with av.open(str(path), 'w') as container:
        stream = container.add_stream('mjpeg', rate=10)
        (stream.height, stream.width), stream.pix_fmt = sizes[0], 'yuvj420p'
        for index, size in enumerate(sizes):
            packet = av.Packet(cv2.imencode('.jpg', np.full((*size, 3), 20 * index, np.uint8))[1].tobytes())
            packet.stream, packet.pts, packet.dts, packet.is_keyframe = stream, index, index, True
            container.mux(packet)
    return path


REFUSED = {
    'large frames': lambda path: blank(path, 8200, 8000, 2),
    'a line': lambda path: blank(path, 16, 4000),
    'many large frames': lambda path: blank(path, 4096, 4096, 70, 'MJPG'),
    'a height of 100,000': lambda path: claim(path, 'height', 100_000),
    'a width of 100,000': lambda path: claim(path, 'width', 100_000),
    'a million times as many frames': lambda path: claim(path, 'frames', 20_000_000),
    'a thousand million frames': lambda path: claim(path, 'frames', 10**9),
}


@pytest.fixture(scope='module')
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp('hostile')
    made = {}
    for number, (kind, make_file) in enumerate(REFUSED.items()):
        made[kind] = make_file(folder / f'videos/{number}.avi')
        assert made[kind].stat().st_size < 10_000_000
    write(folder / 'videos/good.avi', draw(30), 'FFV1')
    write(folder / 'videos/a good.avi', draw(30), 'FFV1')
    return folder, made


@pytest.mark.parametrize('decoder', ['opencv', 'pyav'])
@pytest.mark.parametrize('kind', REFUSED)
def test_each_is_refused_or_read_as_it_is(kind, decoder, hostile):
    """A header that says what is not so may be that of a file whose frames are good."""
    if decoder == 'pyav':
        pytest.importorskip('av')
    with limited_memory(MEMORY):
        try:
            read = LoadClips(clip_length=64, num_clips=1, decoder=decoder)(dict(img_path=str(hostile[1][kind])))
        except FileError:
            return
    assert kind not in ('large frames', 'a line', 'many large frames')
    assert {frame.shape for frame in read['frames']} == {(48, 64, 3)}


def test_predict_goes_on_to_the_others(hostile, tmp_path_factory):
    folder, made = hostile
    config, checkpoint, *_ = make(tmp_path_factory.mktemp('a model'), 'mvit-tiny_moving-digits')
    arguments = [config, checkpoint, 'videos', '--out', 'r.csv']
    result = run_forked(LIMITED, 'memory', ROOT / 'tools/predict.py', *arguments, cwd=folder)
    assert_one_line(result, f'of {len(made) + 2} files could not be read and were skipped: ')
    predicted = {row['file'] for row in csv.DictReader((folder / 'r.csv').open())}
    assert {'videos/a good.avi', 'videos/good.avi'} <= predicted
    assert 'skipped: videos/0.avi cannot be read: a frame has more than 64 million pixels' in result.stderr


def test_the_check_of_a_data_set_holds_few_large_frames(tmp_path):
    blank(tmp_path / 'data/videos/cat/large.avi', 2160, 3840, 40, 'MJPG')
    blank(tmp_path / 'data/videos/dog/larger.avi', 8200, 8000, 2)
    (tmp_path / 'config.py').write_text(f"_base_ = '{ROOT}/tests/video/files.py'\n")
    arguments = ['config.py', '--splits', 'train', '--workers', '1', '--out', 'r.json']
    result = run_forked(LIMITED, 'memory', ROOT / 'tools/check_dataset.py', *arguments, cwd=tmp_path)
    (problem,) = json.loads((tmp_path / 'r.json').read_text())['problems']
    assert problem['file'].endswith('larger.avi'), result.stderr
    assert 'a frame has more than 64 million pixels: make it smaller' in problem['message']


@pytest.mark.parametrize('decoder', ['opencv', 'pyav'])
def test_frames_that_change_their_size_are_read_at_that_of_the_first_one(decoder, tmp_path):
    path = changing(tmp_path / 'a.avi', [(48, 64)] * 4 + [(96, 160)] * 4 + [(16, 2000)])
    frames = open_video(str(path), decoder).read(range(9))
    assert [frame.shape for frame in frames] == [(48, 64, 3)] * 9
    assert frames[7].mean() == pytest.approx(140, abs=3)


def test_what_people_have_is_read():
    for size, number in (((2160, 3840), 64), ((1080, 1920), 160), ((4320, 7680), 16), ((48, 64), 10**5)):
        check_frames(size, number)
    for size, number in (((2160, 3840), 200), ((0, 64), 1), ((0, 0), 1), ((10**5, 10**5), 1)):
        with pytest.raises(FileError):
            check_frames(size, number)
