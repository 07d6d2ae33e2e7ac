"""Embeddings: how tokens come from an image, a video or a map. VT's own way, attention, is in ``tokenizers``."""

from .cubes import CubeEmbed
from .patches import ConvolutionalEmbed, PatchEmbed, PatchMerging
from .progressive_sampling import ProgressiveSampling
from .reduction_cell import ReductionCell
from .soft_split import SoftSplit
from .tokenized import TokenizerEmbed

__all__ = [
    'ConvolutionalEmbed',
    'CubeEmbed',
    'PatchEmbed',
    'PatchMerging',
    'ProgressiveSampling',
    'ReductionCell',
    'SoftSplit',
    'TokenizerEmbed',
]
