"""The parts of Visual Transformers and the networks made of them."""

from .backbones import VTResNet
from .necks import VTFPN, TokenAverage
from .projector import Projector
from .recording import Record, record_attention
from .relations import TokenTransformer
from .tokenizers import FilterTokenizer, RecurrentTokenizer, Tokenizer
from .vt_module import VTModule

__all__ = [
    'VTFPN',
    'FilterTokenizer',
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
