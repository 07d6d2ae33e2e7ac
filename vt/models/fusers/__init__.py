"""Fusers: how tokens return to a map (paper, section 3.3)."""

from .projector import Projector

__all__ = ['Projector']
