"""Fusers: write tokens back to a feature map (paper, section 3.3)."""

from .projector import Projector
from .token_fuser import TokenFuser

__all__ = ['Projector', 'TokenFuser']
