"""Position embeddings and position biases."""

from .absolute import AbsolutePosition, SinusoidalPosition
from .decomposed import DecomposedRelativePosition
from .peg import PEG
from .position_encoder import PositionEncoder
from .relative import ContinuousPositionBias, RelativePositionBias
from .separate import SeparatePosition

__all__ = [
    'PEG',
    'AbsolutePosition',
    'ContinuousPositionBias',
    'DecomposedRelativePosition',
    'PositionEncoder',
    'RelativePositionBias',
    'SeparatePosition',
    'SinusoidalPosition',
]
