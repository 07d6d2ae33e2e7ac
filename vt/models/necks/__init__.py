"""Necks for classifiers, a feature pyramid from one map, and VT-FPN for dense prediction.

VT-FPN needs MMSegmentation, which is imported on first access to ``vt.VTFPN``.
"""

from .scale_fusion import ScaleFusion
from .simple_pyramid import SimplePyramid
from .token_necks import LayerwiseClassAttention, TokenAverage, TokenEncoder

__all__ = ['LayerwiseClassAttention', 'ScaleFusion', 'SimplePyramid', 'TokenAverage', 'TokenEncoder']
