"""Necks: the token average and the token encoder of the classifiers, and VT-FPN for dense prediction."""

from vt._libraries import import_on_demand

from .layerwise_class_attention import LayerwiseClassAttention
from .scale_fusion import ScaleFusion
from .token_average import TokenAverage
from .token_encoder import TokenEncoder

__all__ = ['VTFPN', 'LayerwiseClassAttention', 'ScaleFusion', 'TokenAverage', 'TokenEncoder']

__getattr__ = import_on_demand(__name__, VTFPN='vt.models.necks.vt_fpn:VTFPN')  # it imports MMSegmentation
