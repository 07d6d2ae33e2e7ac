"""Data preprocessor for segmentation of images with any number of channels."""

from collections.abc import Sequence

import torch
from mmseg.models import SegDataPreProcessor

from vt.registry import MODELS


@MODELS.register_module()
class SegBandsPreProcessor(SegDataPreProcessor):
    """MMSegmentation's ``SegDataPreProcessor`` for any number of channels, instead of one or three.

    Args:
        mean, std: mean and standard deviation of each channel.
        **options: of :class:`mmseg.models.SegDataPreProcessor`, such as ``size``.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], **options) -> None:
        super().__init__(mean=mean[:1], std=std[:1], **options)
        for name, values in (('mean', mean), ('std', std)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32).view(-1, 1, 1), persistent=False)
