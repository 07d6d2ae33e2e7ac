"""Tokenizers: a few visual tokens from the pixels of a feature map (paper, section 3.1)."""

from .base import AttentionTokenizer, Tokenizer
from .clustering import ClusteringTokenizer
from .dynamic import DynamicTokenizer
from .learned import FilterTokenizer, RecurrentTokenizer
from .pooling import PoolingTokenizer
from .token_learner import TokenLearner

__all__ = [
    'AttentionTokenizer',
    'ClusteringTokenizer',
    'DynamicTokenizer',
    'FilterTokenizer',
    'PoolingTokenizer',
    'RecurrentTokenizer',
    'TokenLearner',
    'Tokenizer',
]
