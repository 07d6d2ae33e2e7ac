"""Necks for classifiers, a feature pyramid from one map, and VT-FPN for dense prediction.

VT-FPN needs MMSegmentation, which is imported on first access to ``vt.VTFPN``.
"""

from .layerwise_class_attention import LayerwiseClassAttention
from .scale_fusion import ScaleFusion
from .simple_pyramid import SimplePyramid
from .token_average import TokenAverage
from .token_encoder import TokenEncoder

__all__ = ['LayerwiseClassAttention', 'ScaleFusion', 'SimplePyramid', 'TokenAverage', 'TokenEncoder']
