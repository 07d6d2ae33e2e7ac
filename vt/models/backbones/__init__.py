"""Backbones: VT-ResNet, VT on any other, the one of parts, of which MViT is a family, HRFormer, which takes parts."""

from .hrformer import HRFormer
from .mvit import MViT
from .token_backbone import TokenBackbone
from .vt_backbone import VTBackbone
from .vt_resnet import VTResNet, VTResNetCIFAR
from .vt_resnet_anywhere import VTResNetAnywhere

__all__ = ['HRFormer', 'MViT', 'TokenBackbone', 'VTBackbone', 'VTResNet', 'VTResNetAnywhere', 'VTResNetCIFAR']
