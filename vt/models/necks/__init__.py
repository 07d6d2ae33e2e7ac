"""Necks: the token average and the token encoder of classifiers, a pyramid of one map, VT-FPN for dense prediction.

VT-FPN needs MMSegmentation: it is imported when it is asked for, as ``vt.VTFPN``.
"""

from .layerwise_class_attention import LayerwiseClassAttention
from .scale_fusion import ScaleFusion
from .simple_pyramid import SimplePyramid
from .token_average import TokenAverage
from .token_encoder import TokenEncoder

__all__ = ['LayerwiseClassAttention', 'ScaleFusion', 'SimplePyramid', 'TokenAverage', 'TokenEncoder']
