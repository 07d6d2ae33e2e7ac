"""Backbones: VT-ResNet, the one that is made of parts, and HRFormer, of which parts are a part."""

from .hrformer import HRFormer
from .token_backbone import TokenBackbone
from .vt_resnet import VTResNet

__all__ = ['HRFormer', 'TokenBackbone', 'VTResNet']
