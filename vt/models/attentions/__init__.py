"""Attention between tokens, including the relations of VT (paper, section 3.2)."""

from .graph_convolution import GraphConvolution
from .hadamard import HadamardAttention
from .multi_head import Attention, ClassAttention
from .performer import PerformerAttention
from .pooling_attention import PoolingAttention
from .reductions import PoolingReduction, PyramidReduction, ReducedAttention, StridedReduction
from .sparse import SparseAttention
from .talking_heads import EfficientAttention, HeadMixing, TalkingHeadsAttention
from .token_transformer import TokenTransformer
from .value_transformer import ValueTransformer
from .window_attention import CosineAttention, ParallelAttention, StripeAttention, WindowAttention
from .windows import Windows

__all__ = [
    'Attention',
    'ClassAttention',
    'CosineAttention',
    'EfficientAttention',
    'GraphConvolution',
    'HadamardAttention',
    'HeadMixing',
    'ParallelAttention',
    'PerformerAttention',
    'PoolingAttention',
    'PoolingReduction',
    'PyramidReduction',
    'ReducedAttention',
    'SparseAttention',
    'StridedReduction',
    'StripeAttention',
    'TalkingHeadsAttention',
    'TokenTransformer',
    'ValueTransformer',
    'WindowAttention',
    'Windows',
]
