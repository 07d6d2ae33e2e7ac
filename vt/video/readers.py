"""Frames of a video file by their numbers, read by one of three libraries. Only what is asked for is decoded.

Each reader has ``num_frames``, ``fps``, ``size`` (height and width), and ``read``. One thread decodes: a run has its
workers.
"""

from collections.abc import Iterator, Sequence

import cv2
import numpy as np

from vt.errors import FileError

FORWARD = 32  # frames that are decoded and dropped before a reader looks for a nearer key frame


class OpenCVVideo:
    """A video read by OpenCV, which brings its own FFmpeg.

    Raises:
        FileError: the file is no video that OpenCV can read.
    """

    def __init__(self, path: str) -> None:
        self.capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
        if not self.capture.isOpened():
            raise FileError('OpenCV finds no video in it: it is damaged, or something else')
        self.fps = self.capture.get(cv2.CAP_PROP_FPS)
        properties = (cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_WIDTH)
        self.size = tuple(int(self.capture.get(key)) for key in properties)
        self.position = 0  # of the frame that is decoded next
        self.num_frames = int(self.capture.get(cv2.CAP_PROP_FRAME_COUNT))
        if self.num_frames <= 0:
            self.num_frames = self._count()

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Frames ``(H, W, 3)`` uint8 of ``indices``, in their order; of one that comes twice a copy.

        Raises:
            FileError: a frame can't be decoded.
        """
        return _in_order({index: self._frame(index) for index in sorted(set(indices))}, indices)

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

        Raises:
            FileError: more is missing than a twentieth of the length.
        """
        slack, last = max(2, self.num_frames // 20), None
        self._seek(max(index - 2 * slack, 0))
        while self.capture.grab():
            last = self.capture.retrieve()[1]
            self.position += 1
        if last is None or self.num_frames - self.position > slack:
            raise FileError(_undecodable(index, self.num_frames))
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


class PyAVVideo:
    """A video read by PyAV. Arguments, errors and ``read`` as of :class:`OpenCVVideo`."""

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

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        frames: dict[int, np.ndarray] = {}
        coming, position = iter(()), FORWARD * -2
        for index in sorted(set(indices)):
            if index >= self.num_frames:
                raise FileError(_undecodable(index, self.num_frames))
            if index >= position + FORWARD:
                coming = self._from(index)
            frame = next((frame for frame in coming if frame.pts is not None and frame.pts >= self.times[index]), None)
            if frame is None or frame.pts != self.times[index]:
                raise FileError(_undecodable(index, self.num_frames))
            position = index
            height, width = self.size  # of the first frame; others may differ, and OpenCV resizes them so, too
            frames[index] = frame.to_ndarray(format='bgr24', width=width, height=height)
        return _in_order(frames, indices)

    def _from(self, index: int) -> Iterator:
        """Frames from the last key frame before a number on."""
        try:
            self.container.seek(self.times[index], stream=self.stream)
            yield from self.container.decode(self.stream)
        except self.error:  # the caller says which frame is not there
            return


class TorchCodecVideo:
    """A video read by TorchCodec. Arguments, errors and ``read`` as of :class:`OpenCVVideo`."""

    def __init__(self, path: str) -> None:
        from torchcodec.decoders import VideoDecoder

        try:
            self.decoder = VideoDecoder(path, num_ffmpeg_threads=1)
        except (RuntimeError, ValueError) as error:
            raise FileError('TorchCodec finds no video in it: it is damaged, or something else') from error
        about = self.decoder.metadata
        self.num_frames, self.fps, self.size = about.num_frames or 0, about.average_fps, (about.height, about.width)

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        wanted = sorted(set(indices))
        try:
            frames = self.decoder.get_frames_at(wanted).data  # n, C, H, W, RGB
        except (RuntimeError, IndexError) as error:
            raise FileError(f'one of the frames {wanted} of {self.num_frames} cannot be decoded') from error
        images = frames.flip(1).permute(0, 2, 3, 1).contiguous().numpy()
        return _in_order(dict(zip(wanted, images)), indices)


def _in_order(frames: dict[int, np.ndarray], indices: Sequence[int]) -> list[np.ndarray]:
    """Frames in an order of their indices, each an array of its own: what changes one in place changes no other."""
    seen: set[int] = set()
    return [frames[index].copy() if index in seen else seen.add(index) or frames[index] for index in indices]


def _undecodable(index: int, number: int) -> str:
    return f'frame {index} of {number} cannot be decoded: the file is damaged or cut off'
