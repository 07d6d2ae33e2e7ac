"""What is done to the frames of a sample: the same to all of them."""

import random

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmpretrain.datasets import PackInputs
from mmpretrain.registry import TRANSFORMS as IMAGE_TRANSFORMS

from vt.errors import FileError, UserError
from vt.registry import TRANSFORMS


@TRANSFORMS.register_module()
class SameForAllFrames(BaseTransform):
    """Transforms of images, applied to every frame of a sample with the same random numbers.

    So a crop, a flip, RandAugment or an erased rectangle is alike in all frames, while samples differ. Random numbers
    are those of ``random``, ``numpy.random`` and PyTorch, which a run makes functions of seed and sample.

    Reads and writes ``frames`` and ``img_shape``.

    Args:
        transforms: configs of transforms that read and write ``img`` alone, such as mmcv's and MMPretrain's.
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
            image = dict(img=frame, img_shape=frame.shape[:2], ori_shape=results.get('ori_shape'))
            for transform in self.transforms:
                image = transform(image)
            frames.append(image['img'])
        return results | dict(frames=frames, img_shape=frames[0].shape[:2])


@TRANSFORMS.register_module()
class ThreeCrops(BaseTransform):
    """Three squares of each clip, along its longer side: the first, the middle, the last. There are then 3 V views.

    Reads and writes ``frames``, ``num_views`` and ``img_shape``.

    Args:
        crop_size: H and W of a square; frames are at least as large.
    """

    def __init__(self, crop_size: int) -> None:
        self.crop_size = crop_size

    def transform(self, results: dict) -> dict:
        """Cut the squares.

        Raises:
            FileError: frames are smaller; who calls names the file.
        """
        height, width = results['frames'][0].shape[:2]
        free = height - self.crop_size, width - self.crop_size
        if min(free) < 0:
            raise FileError(f'its frames of {height}x{width} are smaller than crop_size={self.crop_size}: resize first')
        crops, length = [], len(results['frames']) // results['num_views']
        for start in range(0, len(results['frames']), length):
            for third in range(3):
                # Along the longer side from one end to the other, along the shorter one in the middle.
                top, left = (room * (third if room == max(free) else 1) // 2 for room in free)
                clip = results['frames'][start : start + length]
                crops += [frame[top : top + self.crop_size, left : left + self.crop_size] for frame in clip]
        return results | dict(frames=crops, num_views=3 * results['num_views'], img_shape=(self.crop_size,) * 2)


@TRANSFORMS.register_module()
class PackClips(PackInputs):
    """The last step: ``inputs`` are ``(C, T, H, W)``, of several views ``(V, C, T, H, W)``, uint8; and a data sample.

    Reads ``frames``, and ``num_views``, one if it is not there. Otherwise MMPretrain's ``PackInputs``.

    Args:
        **kwargs: as of :class:`mmpretrain.datasets.PackInputs`.
    """

    def transform(self, results: dict) -> dict:
        """Pack.

        Raises:
            UserError: nothing has given frames.
        """
        if 'frames' not in results:
            raise UserError('vt.PackClips finds no frames: begin the pipeline with vt.LoadClips')
        frames = torch.from_numpy(np.stack(results['frames']))  # V T, H, W, C
        clips = frames.unflatten(0, (results.get('num_views', 1), -1)).permute(0, 4, 1, 2, 3).contiguous()
        return super().transform(results | {self.input_key: clips if len(clips) > 1 else clips[0]})
