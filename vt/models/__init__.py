"""The parts of Visual Transformers and the networks made of them."""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

from .attentions import (
    Attention,
    ClassAttention,
    CosineAttention,
    GraphConvolution,
    HadamardAttention,
    HeadMixing,
    ParallelAttention,
    PerformerAttention,
    PoolingAttention,
    PoolingReduction,
    PyramidReduction,
    SparseAttention,
    StridedReduction,
    TokenTransformer,
    ValueTransformer,
    Windows,
)
from .backbones import HRFormer, MViT, TokenBackbone, VTBackbone, VTResNet, VTResNetAnywhere
from .block import Block
from .classifiers import DistilledClassifier, TokenLabelClassifier
from .embeddings import (
    ConvolutionalEmbed,
    CubeEmbed,
    PatchEmbed,
    PatchMerging,
    ProgressiveSampling,
    ReductionCell,
    SoftSplit,
    TokenizerEmbed,
)
from .feed_forward import FeedForward, SqueezeExcite
from .fusers import Projector, TokenFuser
from .grid import OnMap, TokenPart
from .heads import DistillationTokenHead, DropoutLinearClsHead, TokenLabelHead
from .messengers import MessengerBias, MessengerBlock, MessengerEmbed, MessengerMerging, MessengerWindows
from .multiscale_block import MultiscaleBlock
from .necks import LayerwiseClassAttention, ScaleFusion, TokenAverage, TokenEncoder
from .normal_cell import NormalCell
from .norms import TokenBatchNorm
from .positions import (
    AbsolutePosition,
    ConditionalPosition,
    ContinuousPositionBias,
    DecomposedRelativePosition,
    PositionEncoder,
    RelativePositionBias,
    SeparatePosition,
    SinusoidalPosition,
)
from .post_norm_block import PostNormBlock
from .recording import Record, record_attention
from .token_pooling import TokenPooling
from .tokenized_block import TokenizedBlock
from .tokenizers import (
    AttentionTokenizer,
    ClusteringTokenizer,
    DynamicTokenizer,
    FilterTokenizer,
    PoolingTokenizer,
    RecurrentTokenizer,
    Tokenizer,
    TokenLearner,
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
    'HRFormer',
    'HadamardAttention',
    'HeadMixing',
    'LayerwiseClassAttention',
    'MViT',
    'MessengerBias',
    'MessengerBlock',
    'MessengerEmbed',
    'MessengerMerging',
    'MessengerWindows',
    'MultiscaleBlock',
    'NormalCell',
    'OnMap',
    'ParallelAttention',
    'PatchEmbed',
    'PatchMerging',
    'PerformerAttention',
    'PoolingAttention',
    'PoolingReduction',
    'PoolingTokenizer',
    'PositionEncoder',
    'PostNormBlock',
    'ProgressiveSampling',
    'Projector',
    'PyramidReduction',
    'Record',
    'RecurrentTokenizer',
    'ReductionCell',
    'RelativePositionBias',
    'ScaleFusion',
    'SeparatePosition',
    'SinusoidalPosition',
    'SoftSplit',
    'SparseAttention',
    'SqueezeExcite',
    'StridedReduction',
    'TokenAverage',
    'TokenBackbone',
    'TokenBatchNorm',
    'TokenEncoder',
    'TokenFuser',
    'TokenLabelClassifier',
    'TokenLabelHead',
    'TokenLearner',
    'TokenPart',
    'TokenPooling',
    'TokenTransformer',
    'TokenizedBlock',
    'Tokenizer',
    'TokenizerEmbed',
    'VTBackbone',
    'VTModule',
    'VTResNet',
    'VTResNetAnywhere',
    'ValueTransformer',
    'Windows',
    'record_attention',
]


if TYPE_CHECKING:
    from .necks.vt_fpn import VTFPN
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)  # it imports MMSegmentation
