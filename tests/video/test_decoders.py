"""Exactly the frames that were written are read, in any order."""

from fractions import Fraction

import cv2
import numpy as np
import pytest
from video.written_videos import SIZE, draw, encode, write

from vt.errors import UserError
from vt.video.decoders import open_video

NUMBER = 80
INDICES = [[0], [79], [3, 7, 11, 15], [40, 41, 79, 79, 79], [70, 2, 33, 2], list(range(80))]


@pytest.mark.parametrize(
    ('name', 'codec', 'tolerance'), [('a.avi', 'FFV1', 0), ('a.mkv', 'FFV1', 0), ('a.mp4', 'mp4v', 4)]
)
def test_frames_are_those_written(name, codec, tolerance, tmp_path):
    expected = draw(NUMBER)
    video = open_video(write(tmp_path / name, expected, codec))
    assert (video.num_frames, video.size) == (NUMBER, SIZE)
    assert video.fps == pytest.approx(25)
    for indices in INDICES:
        frames = video.read(indices)
        for frame, index in zip(frames, indices, strict=True):
            assert frame.shape == (*SIZE, 3)
            assert frame.dtype == np.uint8
            assert np.abs(frame.astype(int) - expected[index]).mean() <= tolerance
            others = [np.abs(frame.astype(int) - other).mean() for other in expected]
            assert np.argmin(others) == index


B_FRAMES = dict(bf='2', **{'b-adapt': '0'})
UNEVEN = np.cumsum(([40] * 10 + [15, 90, 33, 2, 200]) * 6)[:NUMBER]
LATE = np.cumsum([100] * 40 + [5] * 40)  # most frames at the end, where an average rate does not lead
EVEN = np.arange(0, 40 * NUMBER, 40)

# What is written, and which of its frames a player shows.
KINDS = {
    'uneven.mp4': (dict(times=UNEVEN), 0),
    'uneven.mkv': (dict(times=UNEVEN, options=B_FRAMES), 0),
    'late.mp4': (dict(times=LATE, options=B_FRAMES), 0),
    'late.mkv': (dict(times=LATE), 0),
    'sound.mp4': (dict(sound=9), 0),
    'sound.mkv': (dict(sound=9), 0),
    'sound.webm': (dict(sound=9, codec='libvpx-vp9', options=dict(crf='20', qmin='0', qmax='30')), 0),
    'begins late.mp4': (dict(start=520, options=B_FRAMES), 0),
    'begins late.mkv': (dict(start=520, options=B_FRAMES), 0),
    'without its key frame.mp4': (dict(drop=5), 12),
    'without its key frame.mkv': (dict(drop=5, options=B_FRAMES), 12),
    'without its key frame, another codec.mp4': (dict(drop=5, codec='mpeg4'), 12),
    'cut by an edit list.mp4': (dict(start=-240, options=B_FRAMES), 6),
    'half of it cut.mov': (dict(start=-1600), 40),
    'of wide pixels.MP4': (dict(aspect=Fraction(4, 3)), 0),
    'b-frames.avi': (dict(codec='mpeg4', options=dict(bf='2')), 0),
    'b-frames.mpg': (dict(codec='mpeg2video', options=dict(bf='2')), 0),
}


@pytest.mark.parametrize('name', KINDS)
def test_frames_are_those_that_a_player_shows(name, tmp_path):
    pytest.importorskip('av')
    options, first = KINDS[name]
    expected, times = draw(NUMBER)[first:], np.array(options.get('times', EVEN))[first:]
    video = open_video(encode(tmp_path / name, draw(NUMBER), **options))
    assert (video.num_frames, video.size) == (NUMBER - first, SIZE)
    assert video.fps == pytest.approx((len(times) - 1) / (times[-1] - times[0]) * 1000, rel=0.02)
    if name != 'b-frames.mpg':  # of which OpenCV knows the average rate alone
        seconds = [video.times[index] - video.times[0] for index in (1, 7, 30, len(times) - 1)]
        assert seconds == pytest.approx((times[[1, 7, 30, -1]] - times[0]) / 1000, abs=1e-3)
    last = len(expected) - 1
    for indices in ([last], [3, 4, 11], [0, 17, 17, last - 1], [last - 2], [37, 36, 1], range(last + 1)):
        for frame, index in zip(video.read([*indices]), indices, strict=True):
            assert np.argmin([np.abs(frame.astype(int) - other).mean() for other in expected]) == index


@pytest.mark.parametrize('degrees', [90, 180, 270])
def test_frames_are_turned_upright(degrees, tmp_path):
    pytest.importorskip('av')
    stored, times = draw(30), np.arange(0, 1200, 40)
    expected = [np.rot90(frame, -degrees // 90) for frame in stored]
    video = open_video(encode(tmp_path / 'phone.mov', stored, times, rotation=degrees))
    assert video.size == expected[0].shape[:2]
    for frame, index in zip(video.read([20, 0, 29]), (20, 0, 29), strict=True):
        assert frame.shape == expected[0].shape
        assert np.argmin([np.abs(frame.astype(int) - other).mean() for other in expected]) == index


@pytest.mark.parametrize('name', ['a.mp4', 'a.mkv', 'a.avi'])
def test_a_file_that_ends_too_early_is_refused_or_shorter(name, tmp_path):
    pytest.importorskip('av')
    path = encode(tmp_path / name, draw(NUMBER), codec='mpeg4', movflags='faststart')
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    read = open_video if name != 'a.mkv' else lambda *given: open_video(*given).read([NUMBER - 1])
    with pytest.raises(UserError):  # all but Matroska state how many frames they have
        read(path)


def test_an_avi_that_begins_without_a_key_frame_is_refused(tmp_path):
    pytest.importorskip('av')
    path = encode(tmp_path / 'a.avi', draw(NUMBER), drop=3, codec='mpeg4', options=dict(bf='2'))
    with pytest.raises(UserError, match='it starts without a key frame'):
        open_video(path)


def test_a_frame_that_comes_twice_is_two_arrays(tmp_path):
    first, second = open_video(write(tmp_path / 'a.avi', draw(5), 'FFV1')).read([4, 4])
    first[:] = 0
    assert second.any()


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('gone.mp4', None, 'it does not exist'),
        ('empty.mp4', b'', 'finds no video in it'),
        ('text.mp4', b'this is no video, whatever its name says\n' * 9, 'finds no video in it'),
    ],
)
def test_what_is_no_video_is_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        open_video(tmp_path / name)


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
def test_an_image_is_no_video_and_a_video_of_one_frame_is(suffix, tmp_path):
    assert cv2.imwrite(str(tmp_path / f'a{suffix}'), draw(1)[0])
    with pytest.raises(UserError, match=r'it is an image, not a video|finds no video|cannot be decoded'):
        open_video(tmp_path / f'a{suffix}')
    video = open_video(write(tmp_path / 'a.mp4', draw(1)))
    assert (len(video.read([0, 0])), video.fps) == (2, 0)


def test_no_frames_and_frames_that_are_cut_off_are_refused(tmp_path):
    with pytest.raises(UserError):
        open_video(write(tmp_path / 'zero.avi', [], 'MJPG'))
    path = write(tmp_path / 'cut.avi', draw(NUMBER), 'MJPG')
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError):
        open_video(path).read([NUMBER - 1])
