"""Frames of a video file by their numbers, read by one of three libraries. Only what is asked for is decoded.

All three give the frames that a player shows: turned upright by the rotation of the file, without what its edit list
cuts off, from the first key frame on. One thread decodes: a run has its workers.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

import cv2
import numpy as np

from vt.errors import FileError, UserError
from vt.image_bounds import check_frames

FORWARD = 32  # frames that are decoded and dropped before a reader looks for a nearer key frame
EXACT = 5e-6  # seconds by which the times of one frame may differ
TAIL = 4  # frames from the end at which a reader looks for the last one


class Video:
    """An open video file; a subclass a library.

    Attributes:
        num_frames: of the file.
        size: height and width of a frame that is upright.

    Raises:
        FileError: the library can't read the file.
    """

    num_frames: int
    size: tuple[int, int]

    @property
    def fps(self) -> float:
        """Frames a second, on average; 0 for a single frame."""
        seconds = self.seconds(self.num_frames - 1)
        return (self.num_frames - 1) / seconds if seconds else 0.0

    def seconds(self, index: int) -> float:
        """When a frame is shown, after the first one."""
        raise NotImplementedError

    def decode(self, indices: list[int]) -> Iterable[np.ndarray]:
        """Frames ``(H, W, 3)`` uint8, BGR, of rising ``indices``; a FileError for one that can't be decoded."""
        raise NotImplementedError

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Frames of any ``indices``, in their order, as of :meth:`decode`; of one that comes twice a copy."""
        wanted, seen = sorted(set(indices)), set()
        frames = dict(zip(wanted, self.decode(wanted)))
        return [frames[index].copy() if index in seen else seen.add(index) or frames[index] for index in indices]

    def lacks(self, index: int) -> FileError:
        """The error of a frame that is not there."""
        return FileError(f'frame {index} of {self.num_frames} cannot be decoded: the file is damaged or cut off')


class Packet(NamedTuple):
    """A frame before it is decoded: its time in seconds, whether it is a key frame, and whether it is ever shown."""

    time: float
    is_key: bool = True
    is_shown: bool = True


class TimedVideo(Video):
    """A video whose frames are found by their times, since frames need not be evenly spaced.

    A library's search for a key frame may end too late; then, and where frames have no times, they are counted from the
    first one.

    Attributes:
        times: of all frames, in seconds, rising.
        has_times: whether decoded frames have these times.
    """

    times: list[float]
    has_times = True
    place: int | None = 0  # the number of the frame that is decoded next; None where only its time will tell

    def restart(self) -> None:
        """Go to the first frame."""
        raise NotImplementedError

    def jump(self, time: float) -> None:
        """Go to a key frame, and maybe on, to before a time."""
        raise NotImplementedError

    def advance(self) -> float | None:
        """Decode the next frame, and give its time; None at the end."""
        raise NotImplementedError

    def image(self) -> np.ndarray:
        """The frame that was decoded last, as of :meth:`decode`."""
        raise NotImplementedError

    def seconds(self, index: int) -> float:
        return self.times[index] - self.times[0]

    def decode(self, indices: list[int]) -> Iterator[np.ndarray]:
        for index in indices:
            if index >= self.num_frames or not (self._go(index) or self._go(index, anew=True)):
                raise self.lacks(index)
            yield self.image()

    def _go(self, index: int, anew: bool = False) -> bool:
        """Decode up to a frame; whether it is the one."""
        far = self.place is None or not self.place <= index < self.place + FORWARD
        if anew or (not self.has_times and (self.place is None or index < self.place)):
            self.restart()
            self.place = 0
        elif far and self.has_times:
            self.jump(self.times[max(index - 2, 0)])
            self.place = None
        while self.place is None or self.place <= index:
            time = self.advance()
            if time is None:
                return False
            number = self._number(time) if self.has_times else None
            if number is None and self.has_times and not self.place:
                if self.place is None:
                    return False
                continue  # a decoder gives something before the first key frame
            self.place = max(self.place or 0, number or 0) + 1
        return self.place == index + 1

    def index(self, packets: Sequence[Packet], rate: float, is_avi: bool = False) -> None:
        """Set ``times`` and ``num_frames`` from all packets of a file.

        Frames before the first key frame, of a file that was cut without encoding it anew, need others that are gone:
        they are left out, as players do. An edit list hides others. Where two packets have one time, times mean
        nothing, and frames are ``rate`` a second.
        """
        first = next((packet.time for packet in packets if packet.is_key), float('-inf'))
        self.times = sorted(packet.time for packet in packets if packet.time >= first and packet.is_shown)
        self.num_frames = len(self.times)
        if is_avi and packets and not packets[0].is_key:
            raise FileError('it begins without a key frame, and an AVI has no times: encode it anew')
        if not self.has_times or len(set(self.times)) < self.num_frames:
            self.has_times, self.times = False, [index / (rate or 25) for index in range(self.num_frames)]

    def compare(self, number: int, stored: int) -> None:
        """Raise a FileError if a file has fewer frames than it says; a few are left out by some writers."""
        if number < 0.95 * stored:
            raise FileError(f'{number} of its {stored} frames are there: it is damaged or cut off')

    def _number(self, time: float) -> int | None:
        number = bisect_left(self.times, time - EXACT)
        return number if number < self.num_frames and self.times[number] < time + EXACT else None


class OpenCVVideo(TimedVideo):
    """A video read by OpenCV, which brings its own FFmpeg."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.restart()
        if not self.capture.isOpened():
            raise FileError('OpenCV finds no video in it: it is damaged, or something else')
        stored, rate, height, width = (
            self.capture.get(key)
            for key in (cv2.CAP_PROP_FRAME_COUNT, cv2.CAP_PROP_FPS, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_WIDTH)
        )
        self.size, self.shift = (int(height), int(width)), 0.0
        check_frames(self.size)
        with open(path, 'rb') as file:
            start = file.read(12)
        is_avi, is_mp4 = start[:4] == b'RIFF', start[4:8] in (b'ftyp', b'moov', b'mdat', b'wide', b'free', b'skip')
        packets = self._packets()
        self.index(packets, rate, is_avi)
        if is_mp4 and self.times and abs(self._last_time(int(stored)) - self.times[-1]) > EXACT:  # an edit list
            self.restart()
            self.index([*map(Packet, iter(self.advance, None))], rate)
        elif is_mp4 or is_avi:  # others only estimate a number
            self.compare(len(packets), int(stored))
        self.place = None
        if is_avi and self.times:  # its frames have times as they are stored, not as they are shown
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

    def _last_time(self, stored: int) -> float:
        """The time of the last frame that is shown."""
        back = TAIL
        while True:
            self.capture.set(cv2.CAP_PROP_POS_FRAMES, max(stored - back, 0))
            times = [*iter(self.advance, None)]
            if times or back > stored:
                return max(times, default=-1.0)
            back *= 4


class PyAVVideo(TimedVideo):
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
        # With B-frames an AVI has times of storing, not of showing; a program stream has few, and others are guessed.
        self.has_times = self.container.format.name not in ('avi', 'mpeg') or not self.stream.codec_context.has_b_frames
        packets = [*self._packets(is_avi)]
        if all(packet.is_shown for packet in packets):
            self.compare(len(packets), stored)
        self.index(packets, float(self.stream.average_rate or 0), is_avi)
        self.restart()
        if not self._go(0):
            raise FileError('none of its frames can be decoded: it is damaged or cut off')
        # Of the first frame; others may differ, and OpenCV resizes them so, too.
        self.shape = self.frame.height, self.frame.width
        self.size = self.shape if self.frame.rotation % 180 == 0 else self.shape[::-1]

    def restart(self) -> None:
        self.container = self.open()
        if not self.container.streams.video:
            raise FileError('it holds no video')
        self.stream = self.container.streams.video[0]
        self.stream.codec_context.thread_count = 1
        self.coming = self.container.decode(self.stream)

    def jump(self, time: float) -> None:
        self.container.seek(round(time / self.tick), stream=self.stream)
        self.coming = self.container.decode(self.stream)

    def advance(self) -> float | None:
        try:
            self.frame = next(self.coming)
        except (StopIteration, self.error):  # the caller says which frame is not there
            return None
        return (self.frame.pts or 0) * self.tick

    def image(self) -> np.ndarray:
        height, width = self.shape
        image = self.frame.to_ndarray(format='bgr24', width=width, height=height)
        turns = round(self.frame.rotation / 90) % 4  # against the clock
        return np.ascontiguousarray(np.rot90(image, turns)) if turns else image

    def _packets(self, is_avi: bool) -> Iterator[Packet]:
        for packet in self.container.demux(self.stream):
            time = packet.dts if is_avi or packet.pts is None else packet.pts
            if packet.size and time is not None:
                yield Packet(time * self.tick, packet.is_keyframe, not packet.is_discard)


class TorchCodecVideo(Video):
    """A video read by TorchCodec."""

    def __init__(self, path: str) -> None:
        from torchcodec.decoders import VideoDecoder

        self.errors = RuntimeError, ValueError, IndexError
        self.open = lambda: VideoDecoder(path, num_ffmpeg_threads=1)
        try:
            self.decoder = self.open()
        except self.errors as error:
            raise FileError('TorchCodec finds no video in it: it is damaged, or something else') from error
        about = self.decoder.metadata
        self.size, found = (about.height, about.width), about.num_frames or 0
        check_frames(self.size)
        self.skipped = self._before_first_key(found)
        self.num_frames = found - self.skipped

    def seconds(self, index: int) -> float:
        return self._time(self.decoder, self.skipped + index) - self._time(self.decoder, self.skipped)

    def decode(self, indices: list[int]) -> Iterable[np.ndarray]:
        try:
            batch = self.decoder.get_frames_at([self.skipped + index for index in indices])
        except self.errors as error:
            raise self.misses(indices) from error
        if not (batch.pts_seconds.diff() > 0).all():  # one frame for two numbers
            raise self.misses(indices)
        return batch.data.flip(1).permute(0, 2, 3, 1).contiguous().numpy()  # n, C, H, W, RGB

    def misses(self, indices: list[int]) -> FileError:
        """The error of frames that TorchCodec doesn't find; it does not in every format."""
        numbers = f'{indices[0]}' if len(indices) == 1 else f'{indices[0]} to {indices[-1]}'
        where = "it is damaged, or a file that decoder='opencv' and 'pyav' read"
        return FileError(f'frame {numbers} of {self.num_frames} cannot be decoded by TorchCodec: {where}')

    def _before_first_key(self, found: int) -> int:
        """How many frames can't be decoded: TorchCodec raises an error for them, or gives the first one that can."""
        begin, first = self.decoder.metadata.begin_stream_seconds, math.inf
        with suppress(*self.errors):
            first = self._time(self.decoder, 0)
        if found < 2 or abs(first - begin) < EXACT:
            return 0
        number = bisect_left(range(found - 1), True, key=self._is_itself)
        if not self._is_itself(number) or first not in (math.inf, self._time(self.open(), number)):
            self.num_frames = found
            raise self.misses([0])
        return number

    def _is_itself(self, index: int) -> bool:
        """Whether a number gives another frame than the next number does."""
        try:
            return self._time(self.open(), index) < self._time(self.open(), index + 1)
        except self.errors:
            return False

    @staticmethod
    def _time(decoder, index: int) -> float:
        return decoder.get_frame_at(index).pts_seconds


DECODERS = dict(opencv=OpenCVVideo, pyav=PyAVVideo, torchcodec=TorchCodecVideo)
# The module that a decoder needs, and what brings it.
NEEDS = {
    'opencv': ('cv2', 'opencv-python'),
    'pyav': ('av', 'av'),
    'torchcodec': ('torchcodec.decoders', 'torchcodec, and FFmpeg from your system'),
}


def require_decoder(name: str) -> None:
    """Raise a UserError if a decoder is none of ours, or what it needs can't be imported."""
    if name not in DECODERS:
        raise UserError(f"decoder='{name}' is none of {', '.join(DECODERS)}")
    module, packages = NEEDS[name]
    absent = f"decoder='{name}' is not there: install {packages}, or take decoder='opencv'"
    try:
        library = import_module(module)
        if name == 'torchcodec':
            library.VideoDecoder(b'no video')  # it looks for FFmpeg when it opens a video
    except (ImportError, RuntimeError, ValueError) as error:
        if isinstance(error, ImportError) or 'libtorchcodec' in str(error):
            raise UserError(absent) from error


def open_video(path: str, decoder: str = 'opencv') -> Video:
    """Open a video file.

    Args:
        path: of a local file.
        decoder: ``'opencv'``, ``'pyav'`` or ``'torchcodec'``; see :func:`require_decoder`.

    Raises:
        FileError: the file can't be read, has no frames, or too large ones; who calls names the file.
    """
    if not os.path.isfile(path):
        raise FileError('it is not there')
    video = DECODERS[decoder](str(path))
    if video.num_frames <= 0:
        raise FileError('it holds no frames')
    if video.num_frames == 1 and cv2.haveImageReader(str(path)):
        raise FileError('it is an image, not a video')
    return video
