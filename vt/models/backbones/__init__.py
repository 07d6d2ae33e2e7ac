"""Backbones: VT-ResNet, and the one that is made of parts."""

from .token_backbone import TokenBackbone
from .vt_resnet import VTResNet

__all__ = ['TokenBackbone', 'VTResNet']
