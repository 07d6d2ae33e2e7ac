"""Which library reads a video."""

import os
from importlib import import_module

from vt.errors import FileError, UserError
from vt.picture_bounds import check_frames

from .readers import OpenCVVideo, PyAVVideo, TorchCodecVideo

Video = OpenCVVideo | PyAVVideo | TorchCodecVideo
DECODERS = dict(opencv=OpenCVVideo, pyav=PyAVVideo, torchcodec=TorchCodecVideo)
# The module that a decoder needs, and what brings it.
NEEDS = {
    'opencv': ('cv2', 'opencv-python'),
    'pyav': ('av', 'av'),
    'torchcodec': ('torchcodec.decoders', 'torchcodec, and FFmpeg from your system'),
}


def require_decoder(name: str) -> None:
    """Make sure that a decoder is there.

    Raises:
        UserError: it is none of ours, or what it needs can't be imported.
    """
    if name not in DECODERS:
        raise UserError(f"decoder='{name}' is none of {', '.join(DECODERS)}")
    module, packages = NEEDS[name]
    try:
        import_module(module)
        if name == 'torchcodec':
            _load_torchcodec()
    except ImportError as error:
        raise UserError(f"decoder='{name}' is not there: install {packages}, or take decoder='opencv'") from error


def _load_torchcodec() -> None:
    """TorchCodec looks for FFmpeg when it opens its first video; an ``ImportError`` where it finds none."""
    from torchcodec.decoders import VideoDecoder

    try:
        VideoDecoder(b'no video')
    except (RuntimeError, ValueError) as error:
        if 'libtorchcodec' in str(error):
            raise ImportError('FFmpeg is not there') from error


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
