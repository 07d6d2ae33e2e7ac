"""Backbones: VT-ResNet, VT modules on any backbone, vision transformers built from parts, MViT and HRFormer."""

from .hrformer import HRFormer
from .mvit import MViT
from .token_backbone import TokenBackbone
from .vt_backbone import VTBackbone
from .vt_resnet import VTResNet
from .vt_resnet_anywhere import VTResNetAnywhere
from .vt_resnet_cifar import VTResNetCIFAR

__all__ = ['HRFormer', 'MViT', 'TokenBackbone', 'VTBackbone', 'VTResNet', 'VTResNetAnywhere', 'VTResNetCIFAR']
