"""The parts of Visual Transformers, and the networks built from them."""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

from .attentions.graph_convolution import GraphConvolution
from .attentions.hadamard import HadamardAttention
from .attentions.multi_head import Attention, ClassAttention
from .attentions.performer import PerformerAttention
from .attentions.pooling_attention import PoolingAttention
from .attentions.reductions import PoolingReduction, PyramidReduction, ReducedAttention, StridedReduction
from .attentions.sparse import SparseAttention
from .attentions.talking_heads import EfficientAttention, HeadMixing, TalkingHeadsAttention
from .attentions.token_transformer import TokenTransformer
from .attentions.value_transformer import ValueTransformer
from .attentions.window_attention import CosineAttention, ParallelAttention, StripeAttention, WindowAttention
from .attentions.windows import Windows
from .backbones.hrformer import HRFormer
from .backbones.hugging_face import FrozenBackbone, HuggingFaceBackbone
from .backbones.mvit import MViT
from .backbones.token_backbone import TokenBackbone
from .backbones.vt_backbone import VTBackbone
from .backbones.vt_resnet import VTResNet, VTResNetAnywhere, VTResNetCIFAR
from .block import Block
from .classifiers.distilled import DistilledClassifier
from .classifiers.token_label import TokenLabelClassifier
from .embeddings.patches import ConvolutionalEmbed, CubeEmbed, PatchEmbed, PatchMerging
from .embeddings.progressive_sampling import ProgressiveSampling
from .embeddings.reduction_cell import ReductionCell
from .embeddings.soft_split import SoftSplit
from .embeddings.tokenized import TokenizerEmbed
from .feed_forward import FeedForward, SqueezeExcite
from .grid import OnMap, TokenPart
from .heads import DistillationTokenHead, DropoutLinearClsHead, TokenLabelHead
from .layer_init import LayerInit
from .lora import LoRAModel
from .messengers import MessengerBias, MessengerBlock, MessengerEmbed, MessengerMerging, MessengerWindows
from .multiscale_block import MultiscaleBlock
from .necks.scale_fusion import ScaleFusion
from .necks.simple_pyramid import SimplePyramid
from .necks.token_necks import LayerwiseClassAttention, TokenAverage, TokenEncoder
from .normal_cell import NormalCell
from .norms import TokenBatchNorm
from .positions.absolute import AbsolutePosition, SinusoidalPosition
from .positions.decomposed import DecomposedRelativePosition
from .positions.peg import PEG
from .positions.position_encoder import PositionEncoder
from .positions.relative import ContinuousPositionBias, RelativePositionBias
from .positions.separate import SeparatePosition
from .projector import Projector
from .recording import Record, record_attention
from .token_pooling import TokenPooling
from .tokenizers.base import AttentionTokenizer, Tokenizer
from .tokenizers.clustering import ClusteringTokenizer
from .tokenizers.dynamic import DynamicTokenizer
from .tokenizers.learned import FilterTokenizer, RecurrentTokenizer
from .tokenizers.pooling import PoolingTokenizer
from .tokenizers.token_learner import TokenLearner
from .vt_module import VTModule

__all__ = ['VTFPN', 'Block', 'DistillationTokenHead', 'DropoutLinearClsHead', 'FeedForward', 'LargeImageSegmentor']
__all__ += ['LayerInit', 'LoRAModel', 'MessengerBias', 'MessengerBlock', 'MessengerEmbed', 'MessengerMerging']
__all__ += ['MessengerWindows', 'MultiscaleBlock', 'NormalCell', 'OnMap', 'Projector', 'Record', 'SegBandsPreProcessor']
__all__ += ['SqueezeExcite', 'TokenBatchNorm', 'TokenLabelHead', 'TokenPart', 'TokenPooling', 'VTModule']
__all__ += ['record_attention']
__all__ += ['Attention', 'ClassAttention', 'CosineAttention', 'EfficientAttention', 'GraphConvolution']
__all__ += ['HadamardAttention', 'HeadMixing', 'ParallelAttention', 'PerformerAttention', 'PoolingAttention']
__all__ += ['PoolingReduction', 'PyramidReduction', 'ReducedAttention', 'SparseAttention', 'StridedReduction']
__all__ += ['StripeAttention', 'TalkingHeadsAttention', 'TokenTransformer', 'ValueTransformer', 'WindowAttention']
__all__ += ['Windows']
__all__ += ['FrozenBackbone', 'HRFormer', 'HuggingFaceBackbone', 'MViT', 'TokenBackbone', 'VTBackbone', 'VTResNet']
__all__ += ['VTResNetAnywhere', 'VTResNetCIFAR']
__all__ += ['DistilledClassifier', 'TokenLabelClassifier']
__all__ += ['ConvolutionalEmbed', 'CubeEmbed', 'PatchEmbed', 'PatchMerging', 'ProgressiveSampling', 'ReductionCell']
__all__ += ['SoftSplit', 'TokenizerEmbed']
__all__ += ['LayerwiseClassAttention', 'ScaleFusion', 'SimplePyramid', 'TokenAverage', 'TokenEncoder']
__all__ += ['PEG', 'AbsolutePosition', 'ContinuousPositionBias', 'DecomposedRelativePosition', 'PositionEncoder']
__all__ += ['RelativePositionBias', 'SeparatePosition', 'SinusoidalPosition']
__all__ += ['AttentionTokenizer', 'ClusteringTokenizer', 'DynamicTokenizer', 'FilterTokenizer', 'PoolingTokenizer']
__all__ += ['RecurrentTokenizer', 'TokenLearner', 'Tokenizer']

if TYPE_CHECKING:
    from .bands import SegBandsPreProcessor
    from .necks.vt_fpn import VTFPN
    from .sliding_windows import LargeImageSegmentor
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)  # the three need MMSegmentation
