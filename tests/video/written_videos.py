"""Video files that a test writes, whose frames are known."""

import cv2
import numpy as np

SIZE = 48, 64  # height, width


def draw(number, shade=0):
    """Frames that all differ: a bright bar wanders over a background that grows lighter; BGR."""
    frames = np.zeros((number, *SIZE, 3), np.uint8)
    for index, frame in enumerate(frames):
        frame[:] = 30 + (5 * index) % 150, 60 + shade, 90
        frame[:, (3 * index) % 56 : (3 * index) % 56 + 8] = 235
    return list(frames)


def write(path, frames, codec='mp4v', fps=25, size=SIZE):
    """Write frames; ``'FFV1'`` (.avi, .mkv) loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fourcc = cv2.VideoWriter_fourcc(*codec)
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, fourcc, fps, size[::-1])
    assert writer.isOpened()
    for frame in frames:
        writer.write(frame)
    writer.release()
    return path
