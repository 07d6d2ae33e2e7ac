"""Positions: how tokens know where they stand."""

from .absolute import AbsolutePosition, resize_positions
from .conditional import ConditionalPosition
from .position_encoder import PositionEncoder
from .relative import ContinuousPositionBias, RelativePositionBias
from .sinusoidal import SinusoidalPosition

__all__ = [
    'AbsolutePosition',
    'ConditionalPosition',
    'ContinuousPositionBias',
    'PositionEncoder',
    'RelativePositionBias',
    'SinusoidalPosition',
    'resize_positions',
]
