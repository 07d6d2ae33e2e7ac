"""Videos whose frames are too large, or change their size."""

import cv2
import numpy as np
import pytest
from video.written_videos import write

from vt import image_bounds
from vt.errors import FileError
from vt.image_bounds import check_frames
from vt.video import LoadClips, open_video


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


@pytest.mark.parametrize('size', [(1200, 1000), (16, 4000)])
def test_large_frames_are_refused(size, tmp_path, monkeypatch):
    monkeypatch.setattr(image_bounds, 'max_pixels', lambda: 10**6)
    path = write(tmp_path / 'a.avi', [np.zeros((*size, 3), np.uint8)] * 2, 'MJPG', size=size)
    with pytest.raises(FileError, match='a frame has'):
        LoadClips(clip_length=2, num_clips=1)(dict(img_path=str(path)))


def test_frames_that_change_their_size_are_read_at_that_of_the_first_one(tmp_path):
    path = changing(tmp_path / 'a.avi', [(48, 64)] * 4 + [(96, 160)] * 4 + [(16, 2000)])
    frames = open_video(str(path)).read(range(9))
    assert [frame.shape for frame in frames] == [(48, 64, 3)] * 9
    assert frames[7].mean() == pytest.approx(140, abs=3)


def test_what_people_have_is_read():
    for size, number in (((2160, 3840), 64), ((1080, 1920), 160), ((4320, 7680), 16), ((48, 64), 10**5)):
        check_frames(size, number)
    for size, number in (((2160, 3840), 200), ((0, 64), 1), ((0, 0), 1), ((10**5, 10**5), 1)):
        with pytest.raises(FileError):
            check_frames(size, number)
