"""Necks: the token average of the classifiers, and VT-FPN for dense prediction."""

from .token_average import TokenAverage
from .vt_fpn import VTFPN

__all__ = ['VTFPN', 'TokenAverage']
