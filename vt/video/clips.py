"""Which frames of a video make a clip, and reading them."""

import numpy as np
from mmcv.transforms import BaseTransform

from vt.errors import FileError, UserError
from vt.image_bounds import check_frames
from vt.registry import TRANSFORMS

from .decoders import open_video, require_decoder

SHORT = ('repeat', 'refuse')


@TRANSFORMS.register_module()
class LoadClips(BaseTransform):
    """Read one clip at a random place of a video, or several spread evenly over it.

    A clip is ``clip_length`` frames, each ``frame_stride`` after the one before; it spans
    ``(clip_length - 1) * frame_stride + 1`` frames. Of several clips the first begins with the video, and the last ends
    with it; a single one lies in the middle.

    Reads ``img_path``; sets ``frames``, a list of all clips' frames one after the other, ``num_views``, ``img_shape``
    and ``ori_shape``.

    Args:
        clip_length: T.
        frame_stride: step from frame to frame, in frames of the file.
        num_clips: that many, spread evenly, for tests; None: one at a random place, for training.
        decoder: ``'opencv'``, ``'pyav'`` or ``'torchcodec'``.
        short_videos: of a video shorter than a clip ``'repeat'`` takes the last frame again until the clip is full;
            ``'refuse'`` makes it an error.

    Raises:
        UserError: a number is not positive, ``decoder`` is not there, ``short_videos`` has another value.
    """

    def __init__(
        self,
        clip_length: int,
        frame_stride: int = 1,
        num_clips: int | None = None,
        decoder: str = 'opencv',
        short_videos: str = 'repeat',
    ) -> None:
        for name, value in (('clip_length', clip_length), ('frame_stride', frame_stride), ('num_clips', num_clips)):
            if value is not None and value < 1:
                raise UserError(f'LoadClips: {name}={value} must be at least 1')
        if short_videos not in SHORT:
            raise UserError(f"LoadClips: short_videos='{short_videos}' is none of {', '.join(SHORT)}")
        require_decoder(decoder)
        self.clip_length, self.frame_stride, self.num_clips = clip_length, frame_stride, num_clips
        self.decoder, self.short_videos = decoder, short_videos

    @property
    def span(self) -> int:
        """Frames of a video from the first to the last one of a clip."""
        return (self.clip_length - 1) * self.frame_stride + 1

    def transform(self, results: dict) -> dict:
        """Read the clips.

        Raises:
            FileError: the video can't be read, is too short, or its frames are too large; who calls names the file.
        """
        video = open_video(results['img_path'], self.decoder)
        self.check_length(video.num_frames)
        starts = self.choose_starts(video.num_frames)
        offsets = np.arange(self.clip_length) * self.frame_stride
        indices = np.minimum(np.add.outer(starts, offsets), video.num_frames - 1)  # clips, T
        check_frames(video.size, len(np.unique(indices)))
        frames = video.read(indices.ravel().tolist())
        shape = frames[0].shape[:2]
        return results | dict(frames=frames, num_views=len(starts), img_shape=shape, ori_shape=shape)

    def check_length(self, num_frames: int) -> None:
        """Refuse a video that is too short, if it was asked for.

        Raises:
            FileError: it is shorter than a clip.
        """
        if self.short_videos == 'refuse' and num_frames < self.span:
            raise FileError(f"has {num_frames} frames, and a clip spans {self.span}: see short_videos='repeat'")

    def choose_starts(self, num_frames: int) -> np.ndarray:
        """The first frame of each clip, ``(clips,)``."""
        last = max(num_frames - self.span, 0)
        if self.num_clips is None:
            return np.random.randint(0, last + 1, size=1)
        if self.num_clips == 1:
            return np.array([last // 2])
        return np.linspace(0, last, self.num_clips).round().astype(int)
