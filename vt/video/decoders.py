"""Frames of a video file by their numbers, read by one of three libraries. Only what is asked for is decoded.

One thread decodes: a run has its workers.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

import cv2
import numpy as np

from vt.errors import FileError, UserError
from vt.image_bounds import check_frames

FORWARD = 32  # frames that are decoded and dropped before a reader looks for a nearer key frame


class Video:
    """An open video file; a subclass a library.

    Attributes:
        num_frames: of the file.
        fps: frames a second.
        size: height and width.

    Raises:
        FileError: the library can't read the file.
    """

    num_frames: int
    fps: float
    size: tuple[int, int]

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


class OpenCVVideo(Video):
    """A video read by OpenCV, which brings its own FFmpeg."""

    def __init__(self, path: str) -> None:
        self.capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
        if not self.capture.isOpened():
            raise FileError('OpenCV finds no video in it: it is damaged, or something else')
        properties = cv2.CAP_PROP_FPS, cv2.CAP_PROP_FRAME_COUNT, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_WIDTH
        self.fps, number, height, width = (self.capture.get(key) for key in properties)
        self.size = int(height), int(width)
        self.position = 0  # of the frame that is decoded next
        self.num_frames = int(number) if number > 0 else self._count()

    def decode(self, indices: list[int]) -> Iterable[np.ndarray]:
        return map(self._frame, indices)

    def _frame(self, index: int) -> np.ndarray:
        if not self.position <= index < self.position + FORWARD:
            self._seek(index)
        while self.position <= index:
            if not self.capture.grab():
                return self._last(index)
            self.position += 1
        return self.capture.retrieve()[1]

    def _last(self, index: int) -> np.ndarray:
        """The last frame there is, for one that isn't: OpenCV estimates the length of some formats, mkv and webm.

        It is a FileError if more is missing than a twentieth of the length.
        """
        slack, last = max(2, self.num_frames // 20), None
        self._seek(max(index - 2 * slack, 0))
        while self.capture.grab():
            last = self.capture.retrieve()[1]
            self.position += 1
        if last is None or self.num_frames - self.position > slack:
            raise self.lacks(index)
        return last

    def _count(self) -> int:
        """The number of frames of a file whose header doesn't say."""
        count = 0
        while self.capture.grab():
            count += 1
        self._seek(0)
        return count

    def _seek(self, index: int) -> None:
        self.capture.set(cv2.CAP_PROP_POS_FRAMES, index)
        self.position = index


class PyAVVideo(Video):
    """A video read by PyAV."""

    def __init__(self, path: str) -> None:
        import av

        self.error = av.FFmpegError
        try:
            self.container = av.open(path)
        except self.error as error:
            raise FileError(f'PyAV finds no video in it: {error.strerror}') from error
        if not self.container.streams.video:
            raise FileError('it holds no video')
        self.stream = self.container.streams.video[0]
        self.stream.codec_context.thread_count = 1
        self.fps = float(self.stream.average_rate or 0)
        self.size = self.stream.height, self.stream.width
        # When each frame is shown: nothing is decoded for it, and frames need not be evenly spaced.
        self.times = sorted(packet.pts for packet in self.container.demux(self.stream) if packet.pts is not None)
        self.num_frames = len(self.times)
        if self.num_frames < 0.95 * self.stream.frames:
            raise FileError(f'{self.num_frames} of its {self.stream.frames} frames are there: it is damaged or cut off')

    def decode(self, indices: list[int]) -> Iterator[np.ndarray]:
        coming, position = iter(()), FORWARD * -2
        for index in indices:
            if index >= self.num_frames:
                raise self.lacks(index)
            if index >= position + FORWARD:
                coming = self._from(index)
            frame = next((frame for frame in coming if frame.pts is not None and frame.pts >= self.times[index]), None)
            if frame is None or frame.pts != self.times[index]:
                raise self.lacks(index)
            position = index
            height, width = self.size  # of the first frame; others may differ, and OpenCV resizes them so, too
            yield frame.to_ndarray(format='bgr24', width=width, height=height)

    def _from(self, index: int) -> Iterator:
        """Frames from the last key frame before a number on."""
        try:
            self.container.seek(self.times[index], stream=self.stream)
            yield from self.container.decode(self.stream)
        except self.error:  # the caller says which frame is not there
            return


class TorchCodecVideo(Video):
    """A video read by TorchCodec."""

    def __init__(self, path: str) -> None:
        from torchcodec.decoders import VideoDecoder

        try:
            self.decoder = VideoDecoder(path, num_ffmpeg_threads=1)
        except (RuntimeError, ValueError) as error:
            raise FileError('TorchCodec finds no video in it: it is damaged, or something else') from error
        about = self.decoder.metadata
        self.num_frames, self.fps, self.size = about.num_frames or 0, about.average_fps, (about.height, about.width)

    def decode(self, indices: list[int]) -> Iterable[np.ndarray]:
        try:
            frames = self.decoder.get_frames_at(indices).data  # n, C, H, W, RGB
        except (RuntimeError, IndexError) as error:
            raise FileError(f'one of the frames {indices} of {self.num_frames} cannot be decoded') from error
        return frames.flip(1).permute(0, 2, 3, 1).contiguous().numpy()


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
    check_frames(video.size)
    return video
