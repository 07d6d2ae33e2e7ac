"""Images of any number of channels on their way into a segmentor."""

from collections.abc import Sequence

import torch
from mmseg.models import SegDataPreProcessor

from vt.registry import MODELS


@MODELS.register_module()
class SegBandsPreProcessor(SegDataPreProcessor):
    """MMSegmentation's ``SegDataPreProcessor``, which takes one channel or three, for any number of them.

    Args:
        mean, std: a number for each channel.
        **options: of :class:`mmseg.models.SegDataPreProcessor`, such as ``size``.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], **options) -> None:
        super().__init__(mean=mean[:1], std=std[:1], **options)
        for name, values in (('mean', mean), ('std', std)):
            self.register_buffer(name, torch.tensor(values, dtype=torch.float32).view(-1, 1, 1), persistent=False)
