"""Networks and their parts: Visual Transformers, MViT, the models of a survey, and what all of them share."""

from typing import TYPE_CHECKING

from vt._libraries import import_on_demand

from . import mvit, survey, visual_transformers
from .classifiers.distilled import DistilledClassifier
from .classifiers.token_label import TokenLabelClassifier
from .grid import OnMap, TokenPart
from .heads import DistillationTokenHead, DropoutLinearClsHead, TokenLabelHead
from .hugging_face import FrozenBackbone, HuggingFaceBackbone
from .layer_init import LayerInit
from .lora import LoRAModel
from .mvit import *  # noqa: F403
from .optimize import optimize_for
from .recording import Record, record_attention
from .survey import *  # noqa: F403
from .timm_backbone import TimmBackbone
from .visual_transformers import *  # noqa: F403

__all__ = ['VTFPN', 'LargeImageSegmentor', 'SegBandsPreProcessor']
__all__ += ['DistillationTokenHead', 'DistilledClassifier', 'DropoutLinearClsHead', 'FrozenBackbone']
__all__ += ['HuggingFaceBackbone', 'LayerInit', 'LoRAModel', 'OnMap', 'Record', 'TimmBackbone']
__all__ += ['TokenLabelClassifier', 'TokenLabelHead', 'TokenPart', 'optimize_for', 'record_attention']
__all__ += visual_transformers.__all__
__all__ += mvit.__all__
__all__ += survey.__all__

if TYPE_CHECKING:
    from .bands import SegBandsPreProcessor
    from .sliding_windows import LargeImageSegmentor
    from .visual_transformers.vt_fpn import VTFPN
else:
    __getattr__, __dir__ = import_on_demand(__name__, __file__)  # the three need MMSegmentation
