"""Backbones: VT-ResNet, the one that is made of parts, and multiscale vision transformers, which are."""

from .mvit import MViT
from .token_backbone import TokenBackbone
from .vt_resnet import VTResNet

__all__ = ['MViT', 'TokenBackbone', 'VTResNet']
