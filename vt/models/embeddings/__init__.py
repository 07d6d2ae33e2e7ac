"""Embeddings: how tokens come from an image or a map. VT's own way, attention over the pixels, is in ``tokenizers``."""

from .patches import PatchEmbed, PatchMerging
from .progressive_sampling import ProgressiveSampling
from .reduction_cell import ReductionCell
from .stems import ConvolutionalEmbed
from .tokenized import TokenizerEmbed

__all__ = ['ConvolutionalEmbed', 'PatchEmbed', 'PatchMerging', 'ProgressiveSampling', 'ReductionCell', 'TokenizerEmbed']
