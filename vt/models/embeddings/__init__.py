"""Embeddings: tokens from an image, a video or a map. VT's tokenizers are in :mod:`vt.models.tokenizers`."""

from .patches import ConvolutionalEmbed, CubeEmbed, PatchEmbed, PatchMerging
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
