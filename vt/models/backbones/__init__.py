"""Backbones: VT-ResNet, VT modules on any backbone, models built from parts, MViT, HRFormer, those of transformers."""
