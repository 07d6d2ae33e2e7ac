"""CPVT's positional encoding generator (PEG): its zeros around the map tell a token how far the border is."""

from mmpretrain.models.utils import ConditionalPositionEncoding

from vt.registry import MODELS

from ..grid import TokenPart


@MODELS.register_module()
class PEG(TokenPart, ConditionalPositionEncoding):
    """MMPretrain's: ``x`` plus its depthwise 3x3 convolution (CPVT, section 3.2); for tokens of the grid alone.

    Args:
        channels: C.
    """

    takes_class_tokens = False

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)
