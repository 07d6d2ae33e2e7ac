"""Exactly the frames that were written are read, in any order."""

import cv2
import numpy as np
import pytest
from video.written_videos import draw, encode, write

from vt.errors import UserError
from vt.video.decoders import open_video

NUMBER = 80

B_FRAMES = dict(bf='2', **{'b-adapt': '0'})
LATE = np.cumsum([100] * 40 + [5] * 40)  # most frames at the end, where an average rate does not lead

# What is written, and which of its frames a player shows.
KINDS = {
    'uneven.mp4': (dict(times=np.cumsum(([40] * 10 + [15, 90, 33, 2, 200]) * 6)[:NUMBER]), 0),
    'late.mp4': (dict(times=LATE, options=B_FRAMES), 0),
    'sound.webm': (dict(sound=9, codec='libvpx-vp9', options=dict(crf='20', qmin='0', qmax='30')), 0),
    'begins late.mp4': (dict(start=520, options=B_FRAMES), 0),
    'without its key frame.mp4': (dict(drop=5), 12),
    'without its key frame, another codec.mp4': (dict(drop=5, codec='mpeg4'), 12),
    'cut by an edit list.mp4': (dict(start=-240, options=B_FRAMES), 6),
    'b-frames.avi': (dict(codec='mpeg4', options=dict(bf='2')), 0),
    **{f'turned by {degrees}.mov': (dict(rotation=degrees), 0) for degrees in (90, 270)},
}


@pytest.mark.parametrize('name', KINDS)
def test_frames_are_those_that_a_player_shows(name, tmp_path):
    pytest.importorskip('av')
    options, first = KINDS[name]
    times = np.array(options.get('times', np.arange(0, 40 * NUMBER, 40)))[first:]
    expected = [np.rot90(frame, -options.get('rotation', 0) // 90) for frame in draw(NUMBER)[first:]]
    video = open_video(encode(tmp_path / name, draw(NUMBER), **options))
    assert (video.num_frames, video.size) == (NUMBER - first, expected[0].shape[:2])
    assert video.fps == pytest.approx((len(times) - 1) / (times[-1] - times[0]) * 1000, rel=0.02)
    seconds = [video.times[index] - video.times[0] for index in (1, 7, 30, len(times) - 1)]
    assert seconds == pytest.approx((times[[1, 7, 30, -1]] - times[0]) / 1000, abs=1e-3)
    last = len(expected) - 1
    for indices in ([last], [3, 4, 11], [0, 17, 17, last - 1], [last - 2], [37, 36, 1], range(last + 1)):
        for frame, index in zip(video.read([*indices]), indices, strict=True):
            assert np.argmin([np.abs(frame.astype(int) - other).mean() for other in expected]) == index


def halve(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def end_early(path):
    pytest.importorskip('av')
    halve(encode(path, draw(NUMBER), codec='mpeg4', movflags='faststart'))


def drop_key_frame(path):
    pytest.importorskip('av')
    encode(path, draw(NUMBER), drop=3, codec='mpeg4', options=dict(bf='2'))


NO_VIDEO = 'it is an image, not a video|cannot open it as a video|cannot be decoded'
CUT = 'it has only .* frames: it is damaged or cut off'
REFUSED = {  # how a file is made, and what is said of it
    'gone.mp4': (lambda path: None, 'it does not exist'),
    'empty.mp4': (lambda path: path.write_bytes(b''), 'cannot open it as a video'),
    'image.png': (lambda path: cv2.imwrite(str(path), draw(1)[0]), NO_VIDEO),
    'no frames.avi': (lambda path: write(path, [], 'MJPG'), 'it has no frames'),
    'cut off.avi': (lambda path: halve(write(path, draw(NUMBER), 'MJPG')), CUT),
    'ends early.mp4': (end_early, CUT),
    'ends early.avi': (end_early, CUT),
    'without its key frame.avi': (drop_key_frame, 'it starts without a key frame'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_what_cannot_be_read_is_refused(name, tmp_path):
    make, message = REFUSED[name]
    make(tmp_path / name)
    with pytest.raises(UserError, match=message):
        open_video(tmp_path / name).read([NUMBER - 1])
