"""Use transforms of torchvision in a pipeline of MMPretrain."""

import inspect
from typing import Any

import cv2
import numpy as np
import torch
from mmcv.transforms import BaseTransform

from vt.errors import UserError
from vt.registry import TRANSFORMS

FAST = (np.uint8, np.float32)  # where OpenCV swaps channels, ten times as fast as NumPy
# What would have to change with the image, or will be loaded and would have had to.
PLACES = ('gt_seg_map', 'gt_bboxes', 'gt_keypoints', 'seg_map_path', 'seg_fields')


@TRANSFORMS.register_module()
class TorchVision(BaseTransform):
    """Apply a transform of ``torchvision.transforms.v2`` to the image as a tensor.

    ``dict(type='vt.TorchVision', name='RandomResizedCrop', size=224, interpolation='bicubic')`` replaces MMPretrain's
    crop. The transform gets (channels, height, width) in the image's dtype, uint8 of a file, with three channels in the
    order red, green, blue; afterwards they are blue, green, red again, as MMCV loads them. Its random numbers are
    PyTorch's. Sizes follow ``image_size`` of the config.

    Args:
        name: class in ``torchvision.transforms.v2``.
        **options: its arguments; ``interpolation`` by name, such as ``'bicubic'``.

    Raises:
        UserError: there is no such transform, it has no such argument or value, it makes no image of an image, or the
            data have masks, boxes or keypoints, which would not be changed with the image.
    """

    def __init__(self, name: str, **options: Any) -> None:
        from torchvision.transforms import v2  # only runs that use it import it

        found = getattr(v2, name, None)
        if not (inspect.isclass(found) and issubclass(found, v2.Transform)):
            raise UserError(f'vt.TorchVision: torchvision.transforms.v2 has no transform {name!r}')
        accepted = inspect.signature(found).parameters
        if unknown := options.keys() - accepted.keys():
            raise UserError(
                f'vt.TorchVision: {name} has no argument {", ".join(sorted(unknown))}; it has: {", ".join(accepted)}'
            )
        if isinstance(mode := options.get('interpolation'), str):
            modes = [each.value for each in v2.InterpolationMode]
            if mode not in modes:
                raise UserError(f'vt.TorchVision: interpolation={mode!r} must be one of {", ".join(modes)}')
            options['interpolation'] = v2.InterpolationMode(mode)
        try:
            self.part = found(**options)
        except (TypeError, ValueError) as error:
            raise UserError(f'vt.TorchVision: {name}: {" ".join(str(error).split())}') from error

    def transform(self, results: dict) -> dict:
        """Change ``img`` (height, width, channels) and ``img_shape``."""
        if places := [key for key in PLACES if key in results]:
            raise UserError(f'vt.TorchVision changes only the image, and the data have {", ".join(places)} as well')
        image = results['img']
        image = image[..., None] if image.ndim == 2 else image
        fast = image.shape[2] == 3 and image.dtype in FAST
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if fast else _reverse(image, axis=2)
        planes = self.part(torch.from_numpy(image).permute(2, 0, 1))
        if not (isinstance(planes, torch.Tensor) and planes.ndim == 3):
            raise UserError(f'vt.TorchVision: {self.part} makes a {type(planes).__name__} of an image, not an image')
        planes = planes.numpy()
        fast = len(planes) == 3 and planes.dtype in FAST
        image = cv2.merge(tuple(planes[::-1])) if fast else _reverse(planes, axis=0).transpose(1, 2, 0)
        return results | dict(img=np.ascontiguousarray(image), img_shape=image.shape[:2])

    def __repr__(self) -> str:
        return f'TorchVision({self.part})'


def _reverse(image: np.ndarray, axis: int) -> np.ndarray:
    """A copy with three channels in the reverse order; with any other number as it is."""
    return (np.flip(image, axis) if image.shape[axis] == 3 else image).copy()
