"""The parts of Visual Transformers and the networks made of them."""

from vt._libraries import import_on_demand

from .backbones import VTResNet
from .classifiers import DistilledClassifier
from .heads import DropoutLinearClsHead
from .necks import TokenAverage, TokenEncoder
from .position_encoder import PositionEncoder
from .projector import Projector
from .recording import Record, record_attention
from .relations import GraphConvolution, TokenTransformer, ValueTransformer
from .tokenizers import (
    AttentionTokenizer,
    ClusteringTokenizer,
    DynamicTokenizer,
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
    'DistilledClassifier',
    'DropoutLinearClsHead',
    'DynamicTokenizer',
    'FilterTokenizer',
    'GraphConvolution',
    'PoolingTokenizer',
    'PositionEncoder',
    'Projector',
    'Record',
    'RecurrentTokenizer',
    'TokenAverage',
    'TokenEncoder',
    'TokenTransformer',
    'Tokenizer',
    'VTModule',
    'VTResNet',
    'ValueTransformer',
    'record_attention',
]

__getattr__ = import_on_demand(__name__, VTFPN='vt.models.necks.vt_fpn:VTFPN')  # it imports MMSegmentation
