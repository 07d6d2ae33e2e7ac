"""Embeddings: how tokens come from an image, a video or a map. VT's own way, attention, is in ``tokenizers``."""

from .cubes import CubeEmbed
from .patches import PatchEmbed, PatchMerging
from .stems import ConvolutionalEmbed

__all__ = ['ConvolutionalEmbed', 'CubeEmbed', 'PatchEmbed', 'PatchMerging']
