"""Necks: the token average and the token encoder of the classifiers, and VT-FPN for dense prediction."""

from .token_average import TokenAverage
from .token_encoder import TokenEncoder
from .vt_fpn import VTFPN

__all__ = ['VTFPN', 'TokenAverage', 'TokenEncoder']
