"""Backbones: VT-ResNet."""

from .vt_resnet import VTResNet

__all__ = ['VTResNet']
