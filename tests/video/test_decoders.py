"""Every decoder that is installed gives exactly the frames that were written, in any order."""

from fractions import Fraction

import numpy as np
import pytest
from video.written_videos import SIZE, draw, write

from vt.errors import UserError
from vt.video.decoders import DECODERS, open_video, require_decoder

NUMBER = 80
INDICES = [[0], [79], [3, 7, 11, 15], [40, 41, 79, 79, 79], [70, 2, 33, 2], list(range(80))]


@pytest.fixture(params=DECODERS)
def decoder(request):
    try:
        require_decoder(request.param)
    except UserError as error:
        pytest.skip(str(error))
    return request.param


@pytest.mark.parametrize(
    ('name', 'codec', 'tolerance'), [('a.avi', 'FFV1', 0), ('a.mkv', 'FFV1', 0), ('a.mp4', 'mp4v', 4)]
)
def test_frames_are_those_written(name, codec, tolerance, decoder, tmp_path):
    expected = draw(NUMBER)
    video = open_video(write(tmp_path / name, expected, codec), decoder)
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


@pytest.mark.parametrize('suffix', ['.mkv', '.mp4'])
def test_frames_that_are_not_evenly_spaced_are_counted_one_by_one(suffix, decoder, tmp_path):
    av = pytest.importorskip('av')
    if (decoder, suffix) == ('opencv', '.mkv'):
        pytest.skip('OpenCV estimates how many frames such a file has')
    expected, moments = draw(30), np.cumsum([40, 15, 90, 33, 1] * 6)
    with av.open(tmp_path / f'a{suffix}', 'w') as container:
        stream = container.add_stream('mpeg4', rate=25)
        stream.height, stream.width = SIZE
        stream.pix_fmt, stream.bit_rate = 'yuv420p', 2_000_000
        stream.codec_context.time_base = Fraction(1, 1000)
        for image, moment in zip(expected, moments):
            frame = av.VideoFrame.from_ndarray(image, format='bgr24')
            frame.pts, frame.time_base = int(moment), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    video = open_video(tmp_path / f'a{suffix}', decoder)
    assert video.num_frames == 30
    for indices in ([29], [3, 4, 11], [0, 17, 17, 28]):
        for frame, index in zip(video.read(indices), indices, strict=True):
            assert np.argmin([np.abs(frame.astype(int) - other).mean() for other in expected]) == index


def test_a_frame_that_comes_twice_is_two_arrays(decoder, tmp_path):
    first, second = open_video(write(tmp_path / 'a.avi', draw(5), 'FFV1'), decoder).read([4, 4])
    first[:] = 0
    assert second.any()


@pytest.mark.parametrize(
    ('name', 'content', 'message'),
    [
        ('gone.mp4', None, 'it is not there'),
        ('empty.mp4', b'', 'finds no video in it'),
        ('text.mp4', b'this is no video, whatever its name says\n' * 9, 'finds no video in it'),
    ],
)
def test_what_is_no_video_is_refused(name, content, message, decoder, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        open_video(tmp_path / name, decoder)


def test_no_frames_and_frames_that_are_cut_off_are_refused(decoder, tmp_path):
    with pytest.raises(UserError):
        open_video(write(tmp_path / 'zero.avi', [], 'MJPG'), decoder)
    path = write(tmp_path / 'cut.avi', draw(NUMBER), 'MJPG')
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError):
        open_video(path, decoder).read([NUMBER - 1])


def test_a_length_that_is_estimated_too_long_repeats_the_last_frame(tmp_path):
    """As of mkv and webm whose sound is longer than their frames."""
    expected = draw(NUMBER)
    video = open_video(write(tmp_path / 'a.avi', expected, 'FFV1'))
    video.num_frames = NUMBER + 3
    for indices in ([NUMBER + 2], [0, NUMBER - 1, NUMBER], [NUMBER + 1, 5]):
        frames = video.read(indices)
        assert all(
            np.array_equal(frame, expected[min(i, NUMBER - 1)]) for frame, i in zip(frames, indices, strict=True)
        )
    video.num_frames = NUMBER + 10
    with pytest.raises(UserError, match='frame 89 of 90 cannot be decoded'):
        video.read([NUMBER + 9])


def test_a_decoder_that_is_not_there_is_named(monkeypatch):
    with pytest.raises(UserError, match="decoder='ffmpeg' is none of opencv, pyav, torchcodec"):
        require_decoder('ffmpeg')
    monkeypatch.setitem(__import__('sys').modules, 'av', None)
    with pytest.raises(UserError, match="decoder='pyav' is not there: install av, or take decoder='opencv'"):
        require_decoder('pyav')
