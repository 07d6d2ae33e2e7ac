"""Backbones: VT-ResNet, VT modules on any backbone, models built from parts, MViT, HRFormer, those of transformers."""

from .hrformer import HRFormer
from .hugging_face import FrozenBackbone, HuggingFaceBackbone
from .mvit import MViT
from .token_backbone import TokenBackbone
from .vt_backbone import VTBackbone
from .vt_resnet import VTResNet, VTResNetAnywhere, VTResNetCIFAR

__all__ = [
    'FrozenBackbone',
    'HRFormer',
    'HuggingFaceBackbone',
    'MViT',
    'TokenBackbone',
    'VTBackbone',
    'VTResNet',
    'VTResNetAnywhere',
    'VTResNetCIFAR',
]
