"""The parts of Visual Transformers, and the networks built from them."""

# ruff: noqa: F403

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

from . import attentions, backbones, classifiers, embeddings, necks, positions, tokenizers
from .attentions import *
from .backbones import *
from .block import Block
from .classifiers import *
from .embeddings import *
from .feed_forward import FeedForward, SqueezeExcite
from .grid import OnMap, TokenPart
from .heads import DistillationTokenHead, DropoutLinearClsHead, TokenLabelHead
from .layer_init import LayerInit
from .lora import LoRAModel
from .messengers import MessengerBias, MessengerBlock, MessengerEmbed, MessengerMerging, MessengerWindows
from .multiscale_block import MultiscaleBlock
from .necks import *
from .normal_cell import NormalCell
from .norms import TokenBatchNorm
from .positions import *
from .projector import Projector
from .recording import Record, record_attention
from .token_pooling import TokenPooling
from .tokenizers import *
from .vt_module import VTModule

__all__ = [
    'VTFPN',
    'Block',
    'DistillationTokenHead',
    'DropoutLinearClsHead',
    'FeedForward',
    'LargeImageSegmentor',
    'LayerInit',
    'LoRAModel',
    'MessengerBias',
    'MessengerBlock',
    'MessengerEmbed',
    'MessengerMerging',
    'MessengerWindows',
    'MultiscaleBlock',
    'NormalCell',
    'OnMap',
    'Projector',
    'Record',
    'SegBandsPreProcessor',
    'SqueezeExcite',
    'TokenBatchNorm',
    'TokenLabelHead',
    'TokenPart',
    'TokenPooling',
    'VTModule',
    'record_attention',
]
__all__ += attentions.__all__
__all__ += backbones.__all__
__all__ += classifiers.__all__
__all__ += embeddings.__all__
__all__ += necks.__all__
__all__ += positions.__all__
__all__ += tokenizers.__all__

if TYPE_CHECKING:
    from .bands import SegBandsPreProcessor
    from .necks.vt_fpn import VTFPN
    from .sliding_windows import LargeImageSegmentor
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)  # these two import MMSegmentation
