"""The parts of Visual Transformers and the networks made of them."""

from .backbones import VTResNet
from .necks import VTFPN, TokenAverage
from .projector import Projector
from .recording import Record, record_attention
from .relations import GraphConvolution, TokenTransformer
from .tokenizers import (
    AttentionTokenizer,
    ClusteringTokenizer,
    FilterTokenizer,
    PoolingTokenizer,
    RecurrentTokenizer,
    Tokenizer,
)
from .vt_module import VTModule

__all__ = [
    'VTFPN',
    'AttentionTokenizer',
    'ClusteringTokenizer',
    'FilterTokenizer',
    'GraphConvolution',
    'PoolingTokenizer',
    'Projector',
    'Record',
    'RecurrentTokenizer',
    'TokenAverage',
    'TokenTransformer',
    'Tokenizer',
    'VTModule',
    'VTResNet',
    'record_attention',
]
