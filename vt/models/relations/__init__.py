"""Relations: what the visual tokens tell each other (paper, section 3.2)."""

from .graph_convolution import GraphConvolution
from .token_transformer import TokenTransformer

__all__ = ['GraphConvolution', 'TokenTransformer']
