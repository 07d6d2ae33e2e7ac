"""Fusers: write tokens back to a feature map (paper, section 3.3)."""

from .projector import Projector

__all__ = ['Projector']
