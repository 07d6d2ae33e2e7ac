"""Multiscale vision transformers for images and videos (Fan et al., ICCV 2021; Li et al., CVPR 2022)."""

from .decomposed_position import DecomposedRelativePosition
from .multiscale_block import MultiscaleBlock
from .mvit import MViT
from .pooling_attention import PoolingAttention
from .separate_position import SeparatePosition
from .token_pooling import TokenPooling

__all__ = ['DecomposedRelativePosition', 'MViT', 'MultiscaleBlock', 'PoolingAttention', 'SeparatePosition']
__all__ += ['TokenPooling']
