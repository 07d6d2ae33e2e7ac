"""Read frames of a video file by index with OpenCV or PyAV.

Both return the frames that a player shows: rotated as the file states, without frames that its edit list hides,
from the first key frame on. Decoding uses one thread, since a run has several workers.
"""

import os
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import IO, NamedTuple

import cv2
import numpy as np
from mmengine.fileio import get

from vt.errors import FileError, UserError
from vt.image_bounds import check_frames

ROWS = 'rows://'  # start of addresses of :mod:`vt.datasets.rows`
FORWARD = 32  # largest distance in frames that is decoded sequentially instead of seeking a key frame
EXACT = 5e-6  # tolerance of the time of a frame, in seconds
TAIL = 4  # frames from the end at which the search for the last frame starts


class Packet(NamedTuple):
    """An encoded frame: its time in seconds, whether it is a key frame, and whether it is shown."""

    time: float
    is_key: bool = True
    is_shown: bool = True


class Video:
    """Base class of open video files, with a subclass per library.

    Frames are identified by their times, since they need not be evenly spaced. If a library seeks past the wanted
    frame, or frames have no times, frames are counted from the first one.

    Attributes:
        num_frames: number of frames.
        size: height and width of a frame after rotation.
        times: times of all frames in seconds, increasing.
        has_times: whether decoded frames have these times.

    Raises:
        FileError: the library can't read the file.
    """

    num_frames: int
    size: tuple[int, int]
    times: list[float]
    has_times = True
    file: IO[bytes] | None = None
    place: int | None = 0  # index of the next decoded frame; None if only its time will tell

    def restart(self) -> None:
        """Go to the first frame."""
        raise NotImplementedError

    def jump(self, time: float) -> None:
        """Seek a key frame before a time."""
        raise NotImplementedError

    def advance(self) -> float | None:
        """Decode the next frame and return its time; None at the end."""
        raise NotImplementedError

    def image(self) -> np.ndarray:
        """Return the frame that was decoded last, BGR ``(H, W, 3)`` uint8."""
        raise NotImplementedError

    @property
    def fps(self) -> float:
        """Average number of frames per second; 0 for a single frame."""
        seconds = self.times[-1] - self.times[0]
        return (self.num_frames - 1) / seconds if seconds else 0.0

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Read frames ``(H, W, 3)`` of ``indices`` in any order, BGR uint8; repeated indices give copies.

        Raises:
            FileError: a frame can't be decoded.
        """
        frames: dict[int, np.ndarray] = {}
        for index in sorted({*indices}):
            if index >= self.num_frames or not (self._go(index) or self._go(index, anew=True)):
                damage = 'the file is damaged or cut off'
                raise FileError(f'frame {index} of {self.num_frames} cannot be decoded: {damage}')
            frames[index] = self.image()
        return [
            frames[index].copy() if index in indices[:place] else frames[index] for place, index in enumerate(indices)
        ]

    def _go(self, index: int, anew: bool = False) -> bool:
        """Decode up to a frame; return whether it was found."""
        reach = FORWARD if self.has_times else self.num_frames
        if anew or self.place is None or not self.place <= index < self.place + reach:
            if anew or not self.has_times:
                self.restart()
                self.place = 0
            else:
                self.jump(self.times[max(index - 2, 0)])
                self.place = None
        while self.place is None or self.place <= index:
            time = self.advance()
            if time is None:
                return False
            number = self._number(time) if self.has_times else self.place
            if number is None and not self.place:
                if self.place is None:
                    return False
                continue  # a frame before the first key frame
            self.place = max(self.place or 0, number or 0) + 1
        return self.place == index + 1

    def _number(self, time: float) -> int | None:
        number = bisect_left(self.times, time - EXACT)
        return number if number < self.num_frames and self.times[number] < time + EXACT else None

    def index(self, packets: Sequence[Packet], rate: float, is_avi: bool = False) -> None:
        """Set ``times`` and ``num_frames`` from all packets of a file.

        Frames before the first key frame, in a file that was cut without re-encoding, depend on missing frames and are
        left out, as in players; so are frames hidden by an edit list. If two packets have the same time, times are not
        used, and frames are assumed to be evenly spaced at ``rate`` frames per second.
        """
        first = next((packet.time for packet in packets if packet.is_key), float('-inf'))
        self.times = sorted(packet.time for packet in packets if packet.time >= first and packet.is_shown)
        self.num_frames = len(self.times)
        if is_avi and packets and not packets[0].is_key:
            raise FileError('it starts without a key frame, and an AVI has no times: re-encode it')
        if not self.has_times or len(set(self.times)) < self.num_frames:
            self.has_times, self.times = False, [index / (rate or 25) for index in range(self.num_frames)]


def compare(number: int, stored: float) -> None:
    """Raise a FileError if a file has over 5 % fewer frames than it states."""
    if number < 0.95 * stored:
        raise FileError(f'it has only {number} of its {stored:.0f} frames: it is damaged or cut off')


class OpenCVVideo(Video):
    """A video read by OpenCV, which includes FFmpeg."""

    def __init__(self, path: str) -> None:
        self.path, self.shift = path, 0.0
        self.restart()
        if not self.capture.isOpened():
            raise FileError('OpenCV finds no video in it: it is damaged, or not a video')
        self.size = int(self.capture.get(cv2.CAP_PROP_FRAME_HEIGHT)), int(self.capture.get(cv2.CAP_PROP_FRAME_WIDTH))
        check_frames(self.size)
        stored, rate = self.capture.get(cv2.CAP_PROP_FRAME_COUNT), self.capture.get(cv2.CAP_PROP_FPS)
        with open(path, 'rb') as file:
            start = file.read(8)
        is_avi, is_mp4 = start[:4] == b'RIFF', start[4:] in (b'ftyp', b'moov', b'mdat', b'wide', b'free', b'skip')
        packets = self._packets()
        self.index(packets, rate, is_avi)
        if is_mp4 and self.times and abs(self._last_time(stored) - self.times[-1]) > EXACT:  # an edit list hides frames
            self.restart()
            self.index([*map(Packet, iter(self.advance, None))], rate)
        elif is_mp4 or is_avi:  # other formats only estimate the number
            compare(len(packets), stored)
        self.place = None
        if is_avi and self.times:  # times of an AVI are in storage order, not in display order
            self.shift = (self.advance() or 0.0) - self.times[0]
            self.place = 1

    def restart(self) -> None:
        self.capture = cv2.VideoCapture(self.path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])

    def jump(self, time: float) -> None:
        self.capture.set(cv2.CAP_PROP_POS_MSEC, 1000 * (time + self.shift))

    def advance(self) -> float | None:
        return self.capture.get(cv2.CAP_PROP_POS_MSEC) / 1000 - self.shift if self.capture.grab() else None

    def image(self) -> np.ndarray:
        return self.capture.retrieve()[1]

    def _packets(self) -> list[Packet]:
        raw = cv2.VideoCapture(self.path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1, cv2.CAP_PROP_FORMAT, -1])
        packets = []
        while raw.grab():
            is_key = raw.get(cv2.CAP_PROP_LRF_HAS_KEY_FRAME) == 1
            packets.append(Packet(raw.get(cv2.CAP_PROP_POS_MSEC) / 1000, is_key))
        return packets

    def _last_time(self, stored: float) -> float:
        """Return the time of the last frame that is shown; a file that is cut off has none near its stated end."""
        back, times = TAIL, []
        while not times and back < 4 * max(stored, TAIL):
            self.capture.set(cv2.CAP_PROP_POS_FRAMES, max(stored - back, 0))
            times, back = [*iter(self.advance, None)], 4 * back
        return max(times, default=-1.0)


class PyAVVideo(Video):
    """A video read by PyAV."""

    def __init__(self, path: str) -> None:
        import av

        self.error, self.open = av.FFmpegError, lambda: av.open(path)
        try:
            self.restart()
        except self.error as error:
            raise FileError(f'PyAV finds no video in it: {error.strerror}') from error
        check_frames((self.stream.height, self.stream.width))
        stored, self.tick = self.stream.frames, float(self.stream.time_base)
        is_avi = self.container.format.name == 'avi'
        # With B-frames, times of an AVI are in storage order, and most times of a program stream are guessed.
        self.has_times = self.container.format.name not in ('avi', 'mpeg') or not self.stream.codec_context.has_b_frames
        packets = [*self._packets(is_avi)]
        if all(packet.is_shown for packet in packets):
            compare(len(packets), stored)
        self.index(packets, float(self.stream.average_rate or 0), is_avi)
        self.restart()
        if not self._go(0):
            raise FileError('none of its frames can be decoded: it is damaged or cut off')
        # Shape of the first frame; other frames are resized to it if they differ, as in OpenCV.
        self.shape = self.frame.height, self.frame.width
        self.size = self.shape if self.frame.rotation % 180 == 0 else self.shape[::-1]

    def restart(self) -> None:
        self.container = self.open()
        if not self.container.streams.video:
            raise FileError('it has no video stream')
        self.stream = self.container.streams.video[0]
        self.stream.codec_context.thread_count = 1
        self.coming = self.container.decode(self.stream)

    def jump(self, time: float) -> None:
        self.container.seek(round(time / self.tick), stream=self.stream)
        self.coming = self.container.decode(self.stream)

    def advance(self) -> float | None:
        try:
            self.frame = next(self.coming)
        except (StopIteration, self.error):  # the caller reports the missing frame
            return None
        return (self.frame.pts or 0) * self.tick

    def image(self) -> np.ndarray:
        height, width = self.shape
        image = self.frame.to_ndarray(format='bgr24', width=width, height=height)
        turns = round(self.frame.rotation / 90) % 4  # counterclockwise
        return np.ascontiguousarray(np.rot90(image, turns)) if turns else image

    def _packets(self, is_avi: bool) -> Iterator[Packet]:
        for packet in self.container.demux(self.stream):
            time = packet.dts if is_avi or packet.pts is None else packet.pts
            if packet.size and time is not None:
                yield Packet(time * self.tick, packet.is_keyframe, not packet.is_discard)


DECODERS = dict(opencv=OpenCVVideo, pyav=PyAVVideo)


def require_decoder(name: str) -> None:
    """Raise a UserError if a decoder is unknown, or its library is not installed."""
    if name not in DECODERS:
        raise UserError(f"decoder='{name}' is none of {', '.join(DECODERS)}")
    if name == 'pyav' and find_spec('av') is None:
        raise UserError("decoder='pyav' is not installed: install av, or use decoder='opencv'")


def open_video(path: str, decoder: str = 'opencv') -> Video:
    """Open a video.

    Args:
        path: path of a local file, or address of a row of a data set, which becomes a temporary file.
        decoder: ``'opencv'`` or ``'pyav'``; see :func:`require_decoder`.

    Raises:
        FileError: the file can't be read, has no frames, or too large frames; the message does not name the file.
    """
    file = None
    if str(path).startswith(ROWS):
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it is removed with the video
        file.write(get(path))
        file.flush()
        path = file.name
    if not os.path.isfile(path):
        raise FileError('it does not exist')
    video = DECODERS[decoder](str(path))
    video.file = file
    if video.num_frames <= 0:
        raise FileError('it has no frames')
    if video.num_frames == 1 and cv2.haveImageReader(str(path)):
        raise FileError('it is an image, not a video')
    return video
