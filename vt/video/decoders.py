"""Read frames of a video file by index with OpenCV, which includes FFmpeg.

The frames are those that a player shows: rotated as the file states, without frames that its edit list hides, from the
first key frame on. Decoding uses one thread, since a run has several workers.
"""

import os
import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import cv2
import numpy as np
from mmengine.fileio import get

from vt.errors import FileError
from vt.image_bounds import check_frames

ROWS = 'rows://'  # start of addresses of :mod:`vt.datasets.table_dataset`
FORWARD = 32  # largest distance in frames that is decoded sequentially instead of seeking a key frame
EXACT = 5e-6  # tolerance of the time of a frame, in seconds
TAIL = 4  # frames from the end at which the search for the last frame starts


class Video:
    """An open video file.

    Frames are identified by their times, since they need not be evenly spaced. If OpenCV seeks past the wanted frame,
    or frames have no times, frames are counted from the first one.

    Args:
        path: path of a local file.

    Attributes:
        num_frames: number of frames.
        size: height and width of a frame after rotation.
        times: times of all frames in seconds, increasing.
        has_times: whether decoded frames have these times.

    Raises:
        FileError: the file can't be read, has no frames, or too large ones; the message does not name the file.
    """

    file: IO[bytes] | None = None  # a temporary one, which is removed with the video

    def __init__(self, path: str) -> None:
        self.path, self.shift, self.has_times = path, 0.0, True
        self.place: int | None = 0  # index of the next decoded frame; None if only its time will tell
        self._restart()
        if not self.capture.isOpened():
            raise FileError('OpenCV cannot open it as a video: it is damaged, or not a video')
        self.size = int(self.capture.get(cv2.CAP_PROP_FRAME_HEIGHT)), int(self.capture.get(cv2.CAP_PROP_FRAME_WIDTH))
        check_frames(self.size)
        stored = self.capture.get(cv2.CAP_PROP_FRAME_COUNT)
        with Path(path).open('rb') as file:
            start = file.read(8)
        is_avi, is_mp4 = start[:4] == b'RIFF', start[4:] in (b'ftyp', b'moov', b'mdat', b'wide', b'free', b'skip')
        packets = self._packets()
        if is_avi and packets and not packets[0][1]:
            raise FileError('it starts without a key frame, and an AVI has no times: re-encode it')
        self._index(packets)
        if is_mp4 and self.times and abs(self._last_time(stored) - self.times[-1]) > EXACT:  # an edit list hides frames
            self._restart()
            self._index([(time, True) for time in iter(self._advance, None)])
        elif (is_mp4 or is_avi) and len(packets) < 0.95 * stored:  # other formats only estimate the number
            raise FileError(f'it has only {len(packets)} of its {stored:.0f} frames: it is damaged or cut off')
        if not self.times:
            raise FileError('it has no frames')
        if self.num_frames == 1 and cv2.haveImageReader(path):
            raise FileError('it is an image, not a video')
        self.place = None
        if is_avi:  # times of an AVI are in storage order, not in display order
            self.shift = (self._advance() or 0.0) - self.times[0]
            self.place = 1

    @property
    def num_frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    @property
    def fps(self) -> float:
        """Average number of frames per second; 0 for a single frame."""
        seconds = self.times[-1] - self.times[0]
        return (self.num_frames - 1) / seconds if seconds else 0.0

    def read(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Read frames ``(H, W, 3)`` of ``indices`` in any order, repeated ones too, BGR uint8, or raise a FileError."""
        frames: dict[int, np.ndarray] = {}
        for index in sorted({*indices}):
            if index >= self.num_frames or not (self._go(index) or self._go(index, anew=True)):
                damage = 'the file is damaged or cut off'
                raise FileError(f'frame {index} of {self.num_frames} cannot be decoded: {damage}')
            frames[index] = self.capture.retrieve()[1]
        return [frames[index].copy() if index in indices[:i] else frames[index] for i, index in enumerate(indices)]

    def _go(self, index: int, anew: bool = False) -> bool:
        """Decode up to a frame; return whether it was found."""
        reach = FORWARD if self.has_times else self.num_frames
        if anew or self.place is None or not self.place <= index < self.place + reach:
            if anew or not self.has_times:
                self._restart()
                self.place = 0
            else:
                self.capture.set(cv2.CAP_PROP_POS_MSEC, 1000 * (self.times[max(index - 2, 0)] + self.shift))
                self.place = None
        while self.place is None or self.place <= index:
            time = self._advance()
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

    def _index(self, packets: Sequence[tuple[float, bool]]) -> None:
        """Set ``times`` from all packets of a file, see :meth:`_packets`.

        Frames before the first key frame, in a file that was cut without re-encoding, depend on missing frames and are
        left out, as in players. If two packets have the same time, times are not used, and frames are assumed to be
        evenly spaced.
        """
        first = next((time for time, is_key in packets if is_key), float('-inf'))
        self.times = sorted(time for time, _ in packets if time >= first)
        if not self.has_times or len({*self.times}) < self.num_frames:
            rate = self.capture.get(cv2.CAP_PROP_FPS) or 25
            self.has_times, self.times = False, [index / rate for index in range(self.num_frames)]

    def _restart(self) -> None:
        self.capture = cv2.VideoCapture(self.path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])

    def _advance(self) -> float | None:
        """Decode the next frame and return its time; None at the end."""
        return self.capture.get(cv2.CAP_PROP_POS_MSEC) / 1000 - self.shift if self.capture.grab() else None

    def _packets(self) -> list[tuple[float, bool]]:
        """Return the time in seconds of each encoded frame, and whether it is a key frame."""
        raw = cv2.VideoCapture(self.path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1, cv2.CAP_PROP_FORMAT, -1])
        packets = []
        while raw.grab():
            is_key = raw.get(cv2.CAP_PROP_LRF_HAS_KEY_FRAME) == 1
            packets.append((raw.get(cv2.CAP_PROP_POS_MSEC) / 1000, is_key))
        return packets

    def _last_time(self, stored: float) -> float:
        """Return the time of the last frame that is shown; a file that is cut off has none near its stated end."""
        back, times = TAIL, []
        while not times and back < 4 * max(stored, TAIL):
            self.capture.set(cv2.CAP_PROP_POS_FRAMES, max(stored - back, 0))
            times, back = [*iter(self._advance, None)], 4 * back
        return max(times, default=-1.0)


def open_video(path: str) -> Video:
    """Open a video: a local file, or the address of a row of a data set, which becomes a temporary file.

    If it does not exist or cannot be read, there is a FileError.
    """
    if str(path).startswith(ROWS):
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - see Video.file
        file.write(get(path))
        file.flush()
        video = Video(file.name)
        video.file = file
        return video
    if not os.path.isfile(path):
        raise FileError('it does not exist')
    return Video(str(path))
