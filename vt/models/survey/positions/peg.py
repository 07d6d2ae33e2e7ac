"""The positional encoding generator of CPVT (PEG), whose zero padding encodes the distance to the border."""

from mmpretrain.models.utils import ConditionalPositionEncoding

from vt.models.grid import TokenPart
from vt.registry import MODELS


@MODELS.register_module()
class PEG(TokenPart, ConditionalPositionEncoding):
    """MMPretrain's PEG: ``x`` plus its depthwise 3x3 convolution (CPVT, section 3.2), without class tokens.

    Args:
        channels: C.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)
