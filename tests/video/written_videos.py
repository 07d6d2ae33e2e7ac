"""Video files that a test writes, whose frames are known."""

import struct
from fractions import Fraction

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
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, cv2.VideoWriter_fourcc(*codec), fps, size[::-1])
    assert writer.isOpened()
    for frame in frames:
        writer.write(frame)
    writer.release()
    return path


def encode(path, frames, times=None, start=0, drop=0, sound=0, options=None, rotation=0, codec='libx264', **muxer):
    """Write frames with PyAV, a key frame every twelfth.

    Args:
        times: of the frames, in milliseconds; else one every 40.
        start: what is added to them; below 0 what comes before 0 is hidden, in an .mp4.
        drop: packets that are left out at the beginning.
        sound: seconds of silence.
        options: of the encoder, such as B-frames.
        rotation: degrees clockwise, of an .mp4.
        **muxer: options of the container.
    """
    import av

    times = range(0, 40 * len(frames), 40) if times is None else times
    with av.open(str(path), 'w', options=dict(avoid_negative_ts='disabled', **muxer)) as container:
        defaults = dict(bf='0', sc_threshold='0', crf='10') if codec == 'libx264' else dict(qmin='2', qmax='2')
        stream = container.add_stream(codec, rate=25, options=defaults | (options or {}))
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.gop_size = 'yuv420p', 12
        stream.codec_context.time_base = Fraction(1, 25 if path.suffix in ('.avi', '.mpg') else 1000)
        track = container.add_stream('libopus', rate=48000) if sound else None
        packets = []
        for image, time in zip(frames, times, strict=True):
            frame = av.VideoFrame.from_ndarray(image, format='bgr24')
            frame.pts, frame.time_base = int(time), Fraction(1, 1000)
            packets += stream.encode(frame)
        for packet in [*packets, *stream.encode()][drop:]:
            for name in ('pts', 'dts'):
                setattr(packet, name, getattr(packet, name) + int(start / 1000 / packet.time_base))
            container.mux(packet)
        for index in range(50 * sound):
            silence = av.AudioFrame.from_ndarray(np.zeros((1, 960), np.float32), format='fltp', layout='mono')
            silence.sample_rate, silence.pts = 48000, 960 * index
            container.mux(track.encode(silence))
        if track:
            container.mux(track.encode())
    if rotation:
        turn(path, rotation)
    return path


def turn(path, degrees):
    """Write a rotation into the matrix of an .mp4's track, as phones do."""
    content = bytearray(path.read_bytes())
    matrix = content.index(b'tkhd') + 44
    cos, sin = {90: (0, 1), 270: (0, -1)}[degrees]
    content[matrix : matrix + 36] = struct.pack('>9i', cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    path.write_bytes(content)
