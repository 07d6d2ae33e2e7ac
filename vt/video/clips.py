"""Transforms of clips: sample and read the frames of a video, and transform all frames of a sample alike."""

import random

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmpretrain.datasets import PackInputs
from mmpretrain.registry import TRANSFORMS as IMAGE_TRANSFORMS

from vt.errors import FileError, UserError
from vt.image_bounds import check_frames
from vt.registry import TRANSFORMS

from .decoders import open_video


@TRANSFORMS.register_module()
class LoadClips(BaseTransform):
    """Read one clip at a random position of a video, or several clips spread evenly over it.

    A clip has ``clip_length`` frames, ``frame_stride`` frames apart; it spans
    ``(clip_length - 1) * frame_stride + 1`` frames. Of several clips, the first starts with the video and
    the last ends with it; a single clip for testing is central. A video that is shorter than a clip repeats its last
    frame.

    Requires ``img_path``; sets ``frames``, a list of the frames of all clips, ``num_views``, ``img_shape`` and
    ``ori_shape``.

    Args:
        clip_length: T.
        frame_stride: step between frames of a clip, in frames of the file.
        num_clips: number of evenly spread clips, for testing; None for one at a random position, for training.

    Raises:
        UserError: a number is not positive.
    """

    def __init__(self, clip_length: int, frame_stride: int = 1, num_clips: int | None = None) -> None:
        for name, value in (('clip_length', clip_length), ('frame_stride', frame_stride), ('num_clips', num_clips)):
            if value is not None and (type(value) is not int or value < 1):
                raise UserError(f'LoadClips: {name}={value!r} must be a positive integer')
        self.clip_length, self.frame_stride, self.num_clips = clip_length, frame_stride, num_clips

    @property
    def span(self) -> int:
        """Number of frames of the video from the first to the last frame of a clip."""
        return (self.clip_length - 1) * self.frame_stride + 1

    def transform(self, results: dict) -> dict:
        """Read the clips; raises a FileError, without the file's name, if the video can't be read."""
        video = open_video(results['img_path'])
        starts = self.choose_starts(video.num_frames)
        offsets = np.arange(self.clip_length) * self.frame_stride
        indices = np.minimum(np.add.outer(starts, offsets), video.num_frames - 1)  # clips, T
        check_frames(video.size, len(np.unique(indices)))
        frames = video.read(indices.ravel().tolist())
        shape = frames[0].shape[:2]
        return results | dict(frames=frames, num_views=len(starts), img_shape=shape, ori_shape=shape)

    def choose_starts(self, num_frames: int) -> np.ndarray:
        """Return the index of the first frame of each clip, ``(clips,)``."""
        last = max(num_frames - self.span, 0)
        if self.num_clips is None:
            return np.random.randint(0, last + 1, size=1)
        if self.num_clips == 1:
            return np.array([last // 2])
        return np.linspace(0, last, self.num_clips).round().astype(int)


@TRANSFORMS.register_module()
class SameForAllFrames(BaseTransform):
    """Apply transforms of images to every frame of a sample with the same random numbers.

    Crops, flips, RandAugment and erased rectangles are the same in all frames of a sample, and differ between samples.
    The random number generators are those of ``random``, ``numpy.random`` and PyTorch, seeded by the run per sample.

    Requires and updates ``frames`` and ``img_shape``.

    Args:
        transforms: configs of transforms that use only ``img``, such as those of mmcv and MMPretrain.
    """

    def __init__(self, transforms: list[dict]) -> None:
        self.transforms = [IMAGE_TRANSFORMS.build(transform) for transform in transforms]

    def transform(self, results: dict) -> dict:
        of_python, of_numpy, of_torch = random.getstate(), np.random.get_state(), torch.get_rng_state()
        frames = []
        for frame in results['frames']:
            random.setstate(of_python)
            np.random.set_state(of_numpy)
            torch.set_rng_state(of_torch)
            image: dict = dict(img=frame, img_shape=frame.shape[:2], ori_shape=results.get('ori_shape'))
            for transform in self.transforms:
                image = transform(image)
            frames.append(image['img'])
        return results | dict(frames=frames, img_shape=frames[0].shape[:2])


@TRANSFORMS.register_module()
class ThreeCrops(BaseTransform):
    """Crop three squares from each clip, at both ends and in the centre of its longer side; this gives 3 V views.

    Requires and updates ``frames``, ``num_views`` and ``img_shape``.

    Args:
        crop_size: H and W of a crop; frames must be at least as large.
    """

    def __init__(self, crop_size: int) -> None:
        self.crop_size = crop_size

    def transform(self, results: dict) -> dict:
        """Crop the clips; raises a FileError, without the file's name, if the frames are smaller."""
        height, width = results['frames'][0].shape[:2]
        free = height - self.crop_size, width - self.crop_size
        if min(free) < 0:
            raise FileError(f'its frames of {height}x{width} are smaller than crop_size={self.crop_size}: resize first')
        crops, length = [], len(results['frames']) // results['num_views']
        for start in range(0, len(results['frames']), length):
            for third in range(3):
                # Along the longer side from one end to the other, centred along the shorter side.
                top, left = (room * (third if room == max(free) else 1) // 2 for room in free)
                clip = results['frames'][start : start + length]
                crops += [frame[top : top + self.crop_size, left : left + self.crop_size] for frame in clip]
        return results | dict(frames=crops, num_views=3 * results['num_views'], img_shape=(self.crop_size,) * 2)


@TRANSFORMS.register_module()
class PackClips(PackInputs):
    """Pack frames as ``inputs`` ``(C, T, H, W)`` uint8, or ``(V, C, T, H, W)`` for several views, and a data sample.

    It is the last transform of a pipeline. Requires ``frames``, and uses ``num_views``, 1 by default.

    Args:
        **kwargs: options of :class:`mmpretrain.datasets.PackInputs`.
    """

    def transform(self, results: dict) -> dict:
        frames = torch.from_numpy(np.stack(results['frames']))  # V T, H, W, C
        clips = frames.unflatten(0, (results.get('num_views', 1), -1)).permute(0, 4, 1, 2, 3).contiguous()
        return super().transform(results | {self.input_key: clips if len(clips) > 1 else clips[0]})
