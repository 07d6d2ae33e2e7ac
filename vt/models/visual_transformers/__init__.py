"""Visual Transformers (Wu et al., ICCV 2021), in the order of the paper.

Read ``grouped_linear`` (the matrices), ``tokenizer``, ``learned_tokenizers``, ``token_transformer``, ``projector``,
``vt_module``, ``vt_stage``, ``vt_resnet`` and ``vt_fpn``: the published model, from equation 1 to VT-FPN. The products
with pixels in equations 1, 2 and 4 are functions in :mod:`vt.ops.plain`; the rest of ``vt/ops`` are faster forms.
"""

# ruff: isort: off
from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

# 3.1 Tokenizers: equations 1 and 2
from .tokenizer import AttentionTokenizer, Tokenizer
from .learned_tokenizers import FilterTokenizer, RecurrentTokenizer

# 3.2 Transformer: equation 3
from .token_transformer import TokenTransformer

# 3.3 Projector: equation 4
from .projector import Projector

# 3, figure 1: the module
from .vt_module import VTModule

# 4.1 Classification: modules in place of the last stage of a ResNet, and the average of their tokens
from .vt_resnet import VTResNet, VTResNetCIFAR
from .token_necks import TokenAverage, TokenEncoder

# 5.1 Ablations: other tokenizers (table 3), another relation (table 5)
from .clustering_tokenizer import ClusteringTokenizer
from .pooling_tokenizer import PoolingTokenizer
from .graph_convolution import GraphConvolution

# The first version (arXiv 2006.03677v1)
from .dynamic_tokenizer import DynamicTokenizer
from .position_encoder import PositionEncoder
from .value_transformer import ValueTransformer

# Beyond the paper: modules after any backbone
from .vt_backbone import VTBackbone

__all__ = ['AttentionTokenizer', 'FilterTokenizer', 'Projector', 'RecurrentTokenizer', 'TokenTransformer', 'Tokenizer']
__all__ += ['TokenAverage', 'TokenEncoder', 'VTModule', 'VTResNet', 'VTResNetCIFAR']
__all__ += ['ClusteringTokenizer', 'GraphConvolution', 'PoolingTokenizer']
__all__ += ['DynamicTokenizer', 'PositionEncoder', 'VTBackbone', 'ValueTransformer']

if TYPE_CHECKING:
    # 4.2 Semantic segmentation: a pyramid whose levels exchange tokens
    from .vt_fpn import VTFPN as VTFPN
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)  # VTFPN needs MMSegmentation
