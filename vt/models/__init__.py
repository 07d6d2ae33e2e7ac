"""The parts of Visual Transformers and the networks made of them."""

from vt._libraries import import_on_demand

from .attentions import (
    Attention,
    ClassAttention,
    CosineAttention,
    GraphConvolution,
    HeadMixing,
    ParallelAttention,
    PoolingAttention,
    PoolingReduction,
    PyramidReduction,
    StridedReduction,
    TokenTransformer,
    ValueTransformer,
    Windows,
)
from .backbones import MViT, TokenBackbone, VTResNet
from .block import Block
from .classifiers import DistilledClassifier
from .embeddings import ConvolutionalEmbed, CubeEmbed, PatchEmbed, PatchMerging
from .feed_forward import FeedForward, SqueezeExcite
from .fusers import Projector
from .grid import OnMap
from .heads import DistillationTokenHead, DropoutLinearClsHead
from .multiscale_block import MultiscaleBlock
from .necks import LayerwiseClassAttention, TokenAverage, TokenEncoder
from .norms import TokenBatchNorm
from .positions import (
    AbsolutePosition,
    ConditionalPosition,
    ContinuousPositionBias,
    DecomposedRelativePosition,
    PositionEncoder,
    RelativePositionBias,
    SeparatePosition,
)
from .recording import Record, record_attention
from .token_pooling import TokenPooling
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
    'AbsolutePosition',
    'Attention',
    'AttentionTokenizer',
    'Block',
    'ClassAttention',
    'ClusteringTokenizer',
    'ConditionalPosition',
    'ContinuousPositionBias',
    'ConvolutionalEmbed',
    'CosineAttention',
    'CubeEmbed',
    'DecomposedRelativePosition',
    'DistillationTokenHead',
    'DistilledClassifier',
    'DropoutLinearClsHead',
    'DynamicTokenizer',
    'FeedForward',
    'FilterTokenizer',
    'GraphConvolution',
    'HeadMixing',
    'LayerwiseClassAttention',
    'MViT',
    'MultiscaleBlock',
    'OnMap',
    'ParallelAttention',
    'PatchEmbed',
    'PatchMerging',
    'PoolingAttention',
    'PoolingReduction',
    'PoolingTokenizer',
    'PositionEncoder',
    'Projector',
    'PyramidReduction',
    'Record',
    'RecurrentTokenizer',
    'RelativePositionBias',
    'SeparatePosition',
    'SqueezeExcite',
    'StridedReduction',
    'TokenAverage',
    'TokenBackbone',
    'TokenBatchNorm',
    'TokenEncoder',
    'TokenPooling',
    'TokenTransformer',
    'Tokenizer',
    'VTModule',
    'VTResNet',
    'ValueTransformer',
    'Windows',
    'record_attention',
]

__getattr__ = import_on_demand(__name__, VTFPN='vt.models.necks.vt_fpn:VTFPN')  # it imports MMSegmentation
