"""Random crops of images, resized by PyTorch."""

import numpy as np
import torch
import torch.nn.functional as F
from mmpretrain.datasets import RandomResizedCrop as Published

from vt.errors import UserError
from vt.registry import TRANSFORMS


@TRANSFORMS.register_module()
class RandomResizedCrop(Published):
    """MMPretrain's ``RandomResizedCrop`` with the filter of ``backend='pillow'``, computed by PyTorch in less time.

    A few values of uint8 images differ from Pillow's, by at most 2 of 255, because PyTorch's integer weights have fewer
    bits. The same random numbers give the same crops.

    Args:
        scale: height and width of the result, or one number for both.
        interpolation: ``'bilinear'`` or ``'bicubic'``.
        **kwargs: ``crop_ratio_range``, ``aspect_ratio_range`` and ``max_attempts`` of MMPretrain's class.

    Raises:
        UserError: ``interpolation`` has another value.
    """

    def __init__(self, scale: int | tuple[int, int], interpolation: str = 'bilinear', **kwargs) -> None:
        if interpolation not in ('bilinear', 'bicubic'):
            raise UserError(f"RandomResizedCrop: interpolation={interpolation!r} must be 'bilinear' or 'bicubic'")
        super().__init__(scale, interpolation=interpolation, backend='torch', **kwargs)

    def transform(self, results: dict) -> dict:
        """Replace ``img`` (height, width, channels) and ``img_shape`` in the results."""
        top, left, height, width = self.rand_crop_params(results['img'])
        crop = np.ascontiguousarray(np.atleast_3d(results['img'])[top : top + height, left : left + width])
        batch = torch.from_numpy(crop).permute(2, 0, 1)[None]  # 1, channels, height, width
        resized = F.interpolate(batch, size=tuple(self.scale), mode=self.interpolation, antialias=True)
        image = np.ascontiguousarray(resized[0].permute(1, 2, 0).numpy())
        return results | dict(img=image, img_shape=image.shape)
