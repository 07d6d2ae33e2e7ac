"""The parts that the vision transformers of the survey choose from, by component, and the backbones built from them."""

from .attentions.hadamard import HadamardAttention
from .attentions.multi_head import Attention, ClassAttention
from .attentions.performer import PerformerAttention
from .attentions.reductions import PoolingReduction, PyramidReduction, ReducedAttention, StridedReduction
from .attentions.sparse import SparseAttention
from .attentions.talking_heads import EfficientAttention, HeadMixing, TalkingHeadsAttention
from .attentions.window_attention import CosineAttention, ParallelAttention, StripeAttention, WindowAttention
from .attentions.windows import Windows
from .backbones.hrformer import HRFormer
from .backbones.token_backbone import TokenBackbone
from .blocks.block import Block
from .blocks.feed_forward import FeedForward, SqueezeExcite
from .blocks.messengers import MessengerBias, MessengerBlock, MessengerEmbed, MessengerMerging, MessengerWindows
from .blocks.normal_cell import NormalCell
from .blocks.norms import TokenBatchNorm
from .embeddings.patches import ConvolutionalEmbed, CubeEmbed, PatchEmbed, PatchMerging
from .embeddings.progressive_sampling import ProgressiveSampling
from .embeddings.reduction_cell import ReductionCell
from .embeddings.soft_split import SoftSplit
from .embeddings.token_learner import TokenLearner
from .embeddings.tokenized import TokenizerEmbed
from .necks.layerwise_class_attention import LayerwiseClassAttention
from .necks.scale_fusion import ScaleFusion
from .necks.simple_pyramid import SimplePyramid
from .positions.absolute import AbsolutePosition, SinusoidalPosition
from .positions.peg import PEG
from .positions.relative import ContinuousPositionBias, RelativePositionBias

__all__ = ['Attention', 'ClassAttention', 'CosineAttention', 'EfficientAttention', 'HadamardAttention', 'HeadMixing']
__all__ += ['ParallelAttention', 'PerformerAttention', 'PoolingReduction', 'PyramidReduction', 'ReducedAttention']
__all__ += ['SparseAttention', 'StridedReduction', 'StripeAttention', 'TalkingHeadsAttention', 'WindowAttention']
__all__ += ['Windows']
__all__ += ['HRFormer', 'TokenBackbone']
__all__ += ['Block', 'FeedForward', 'MessengerBias', 'MessengerBlock', 'MessengerEmbed', 'MessengerMerging']
__all__ += ['MessengerWindows', 'NormalCell', 'SqueezeExcite', 'TokenBatchNorm']
__all__ += ['ConvolutionalEmbed', 'CubeEmbed', 'PatchEmbed', 'PatchMerging', 'ProgressiveSampling', 'ReductionCell']
__all__ += ['SoftSplit', 'TokenLearner', 'TokenizerEmbed']
__all__ += ['LayerwiseClassAttention', 'ScaleFusion', 'SimplePyramid']
__all__ += ['PEG', 'AbsolutePosition', 'ContinuousPositionBias', 'RelativePositionBias', 'SinusoidalPosition']
