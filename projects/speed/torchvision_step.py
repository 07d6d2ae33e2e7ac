"""Use transforms of torchvision on tensors in a pipeline of MMPretrain."""

from typing import Any

import cv2
import torch
from mmcv.transforms import BaseTransform
from torchvision.transforms import v2

from vt.errors import UserError
from vt.registry import TRANSFORMS

# What would have to change with the image, or will be loaded and would have had to.
PLACES = ('gt_seg_map', 'gt_bboxes', 'gt_keypoints', 'seg_map_path', 'seg_fields')


@TRANSFORMS.register_module()
class TorchVision(BaseTransform):
    """Apply a transform of ``torchvision.transforms.v2`` to the image as a tensor.

    ``dict(type='vt.TorchVision', name='RandomResizedCrop', size=224, interpolation='bicubic')`` replaces MMPretrain's
    crop, with ``custom_imports = dict(imports='projects.speed.torchvision_step')``. The transform gets (3, height,
    width) in the image's dtype, in the order red, green, blue. Its random numbers are PyTorch's.

    Args:
        name: class in ``torchvision.transforms.v2``.
        **options: its arguments; ``interpolation`` by name, such as ``'bicubic'``.

    Raises:
        UserError: the data have masks, boxes or keypoints, which would not be changed with the image.
    """

    def __init__(self, name: str, **options: Any) -> None:
        if 'interpolation' in options:
            options['interpolation'] = v2.InterpolationMode(options['interpolation'])
        self.part = getattr(v2, name)(**options)

    def transform(self, results: dict) -> dict:
        """Change ``img`` (height, width, 3), blue first, and ``img_shape``."""
        if places := [key for key in PLACES if key in results]:
            raise UserError(f'vt.TorchVision changes only the image, and the data have {", ".join(places)} as well')
        image = cv2.cvtColor(results['img'], cv2.COLOR_BGR2RGB)  # ten times as fast as NumPy
        planes = self.part(torch.from_numpy(image).permute(2, 0, 1)).numpy()
        image = cv2.merge(tuple(planes[::-1]))
        return results | dict(img=image, img_shape=image.shape[:2])
