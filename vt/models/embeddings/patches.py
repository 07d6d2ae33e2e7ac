"""A token for each patch of an image, or for each 2x2 neighbours of a map.

An embedding takes a map ``(N, in_channels, H, W)`` and gives tokens ``(N, P, C)`` and the size of their grid.
"""

from mmcv.cnn.bricks import transformer
from mmpretrain.models import utils
from torch import Tensor

from vt.registry import MODELS

from ..grid import Size, to_tokens


@MODELS.register_module()
class PatchEmbed(transformer.PatchEmbed):
    """mmcv's: a strided convolution, with a normalisation on request.

    Args:
        in_channels: of the map.
        channels: C.
        kernel_size: of the convolution, whose ``stride`` is the same by default.
        **kwargs: other options of :class:`mmcv.cnn.bricks.transformer.PatchEmbed`, such as ``padding``, ``norm_cfg``.
    """

    def __init__(self, in_channels: int, channels: int, kernel_size: int, stride: int | None = None, **kwargs) -> None:
        super().__init__(in_channels, channels, kernel_size=kernel_size, stride=stride or kernel_size, **kwargs)


@MODELS.register_module()
class PatchMerging(utils.PatchMerging):
    """MMPretrain's: the channels of 2x2 neighbours together, normalised and multiplied by a matrix (Swin, section 3.1).

    Args:
        in_channels: of the map.
        channels: C.
        **kwargs: other options of :class:`mmpretrain.models.utils.PatchMerging`.
    """

    def __init__(self, in_channels: int, channels: int, **kwargs) -> None:
        super().__init__(in_channels, channels, **kwargs)

    def forward(self, x: Tensor) -> tuple[Tensor, Size]:
        return super().forward(to_tokens(x), x.shape[2:])
