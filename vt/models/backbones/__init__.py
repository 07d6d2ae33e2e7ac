"""Backbones: VT-ResNet, the one that is made of parts, of which MViT is a family, and HRFormer, which takes parts."""

from .hrformer import HRFormer
from .mvit import MViT
from .token_backbone import TokenBackbone
from .vt_resnet import VTResNet

__all__ = ['HRFormer', 'MViT', 'TokenBackbone', 'VTResNet']
