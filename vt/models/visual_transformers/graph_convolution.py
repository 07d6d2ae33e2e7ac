"""The graph convolution that the paper compares with (section 5.1, table 5).

Letters: N batch, L tokens, C_T token channels; G ``(L, L)`` adjacency matrix.
"""

import torch
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.models.checks import require_positive
from vt.registry import MODELS


@MODELS.register_module()
class GraphConvolution(nn.Module):
    """Graph convolution on the tokens: ``T_out = T + ReLU(G T)``, with a learned adjacency matrix G.

    The transformer computes its attention weights from the tokens. G is a parameter, the same for every image.
    In table 5 this relation has as many parameters as a model without a relation, and the same FLOPs within 0.1 %, so
    the published one has no matrix over the channels, and neither has this one.

    G is drawn from a normal distribution with standard deviation ``1 / sqrt(L)`` (LeCun initialisation).

    Args:
        token_channels, groups: not used; accepted because backbones and necks pass them to every relation.
        num_tokens: L, the number of nodes of the graph; every input must have as many tokens.
        drop_path: probability of skipping the update for a sample (stochastic depth).
    """

    def __init__(self, token_channels: int, num_tokens: int = 16, groups: int = 1, drop_path: float = 0.0) -> None:
        super().__init__()
        require_positive(self, num_tokens=num_tokens)
        self.edges = nn.Parameter(torch.randn(num_tokens, num_tokens) * num_tokens**-0.5)
        self.relu = nn.ReLU()
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """Relate the tokens: ``(N, L, C_T)`` to ``(N, L, C_T)``."""
        return tokens + self.drop_path(self.relu(self.edges @ tokens))
