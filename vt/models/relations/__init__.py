"""Relations: what the visual tokens tell each other (paper, section 3.2)."""

from .graph_convolution import GraphConvolution
from .token_transformer import TokenTransformer
from .value_transformer import ValueTransformer

__all__ = ['GraphConvolution', 'TokenTransformer', 'ValueTransformer']
