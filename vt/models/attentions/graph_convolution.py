"""The graph convolution that the paper compares with (section 5.1, table 5).

Letters: N batch, L tokens, C_T token channels.
"""

import torch
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.registry import MODELS

from ..grouped_linear import GroupedLinear


@MODELS.register_module()
class GraphConvolution(nn.Module):
    """Graph convolution on the tokens: ``T_out = T + ReLU(G T W)``, with a learned adjacency matrix G.

    The transformer computes its attention weights from the tokens. G is a parameter, the same for every image.
    In table 5 this relation has as many parameters as a model without a relation, and the same FLOPs within 0.1 %, so
    the published one has no matrix over the channels: W is the identity unless ``channel_matrix`` is set.

    G is drawn from a normal distribution with standard deviation ``1 / sqrt(L)`` (LeCun initialisation).

    Args:
        token_channels: C_T.
        num_tokens: L, the number of nodes of the graph; every input must have as many tokens.
        channel_matrix: learn W, C_T x C_T.
        groups: channel groups of W.
        drop_path: probability of skipping the update for a sample (stochastic depth).

    Raises:
        UserError: ``groups`` does not divide C_T; in the forward pass, another number of tokens than ``num_tokens``.
    """

    def __init__(
        self,
        token_channels: int,
        num_tokens: int = 16,
        channel_matrix: bool = False,
        groups: int = 1,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.edges = nn.Parameter(torch.randn(num_tokens, num_tokens) * num_tokens**-0.5)
        self.update = nn.Identity()
        if channel_matrix:
            self.update = GroupedLinear(token_channels, token_channels, groups)
        self.relu = nn.ReLU()
        self.drop_path = DropPath(drop_path)

    def forward(self, tokens: Tensor) -> Tensor:
        """Relate the tokens: ``(N, L, C_T)`` to ``(N, L, C_T)``."""
        return tokens + self.drop_path(self.relu(self.update(self.edges @ tokens)))
