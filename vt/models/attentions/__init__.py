"""Attentions among tokens; VT's relations (paper, section 3.2) among them."""

from .class_attention import ClassAttention
from .graph_convolution import GraphConvolution
from .multi_head import Attention
from .pooling_attention import PoolingAttention
from .reductions import PoolingReduction, PyramidReduction, StridedReduction
from .token_transformer import TokenTransformer
from .value_transformer import ValueTransformer
from .variants import CosineAttention, HeadMixing, ParallelAttention
from .windows import Windows

__all__ = [
    'Attention',
    'ClassAttention',
    'CosineAttention',
    'GraphConvolution',
    'HeadMixing',
    'ParallelAttention',
    'PoolingAttention',
    'PoolingReduction',
    'PyramidReduction',
    'StridedReduction',
    'TokenTransformer',
    'ValueTransformer',
    'Windows',
]
