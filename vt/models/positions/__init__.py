"""Positions: how tokens know where they stand."""

from .absolute import AbsolutePosition, resize_positions
from .conditional import ConditionalPosition
from .decomposed import DecomposedRelativePosition
from .position_encoder import PositionEncoder
from .relative import ContinuousPositionBias, RelativePositionBias
from .separate import SeparatePosition
from .sinusoidal import SinusoidalPosition

__all__ = [
    'AbsolutePosition',
    'ConditionalPosition',
    'ContinuousPositionBias',
    'DecomposedRelativePosition',
    'PositionEncoder',
    'RelativePositionBias',
    'SeparatePosition',
    'SinusoidalPosition',
    'resize_positions',
]
