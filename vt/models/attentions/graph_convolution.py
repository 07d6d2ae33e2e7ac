"""The graph convolution that the paper compares with (section 5.1, table 5).

Letters: N batch, L tokens, C_T token channels.
"""

import torch
from mmcv.cnn.bricks import DropPath
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

from ..grouped_linear import GroupedLinear


@MODELS.register_module()
class GraphConvolution(nn.Module):
    """``T_out = T + ReLU(G T W)``: tokens are the nodes of a graph whose edges G are learned, the same for every image.

    Where the transformer computes from the tokens how much each takes from each, G is fixed once trained. Table 5 gives
    this relation the parameters and, to 0.1 %, the FLOPs of no relation at all, which leaves no room for a matrix over
    the channels: W is the identity unless ``channel_matrix`` is set.

    G starts normal with standard deviation ``1 / sqrt(L)`` (LeCun's).

    Args:
        token_channels: C_T.
        num_tokens: L; the graph has as many nodes, so the number is fixed.
        channel_matrix: have a W of C_T x C_T.
        groups: channel groups of W.
        drop_path: probability to leave a sample's tokens as they are (stochastic depth).
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
        if tokens.shape[1] != len(self.edges):
            raise UserError(f'GraphConvolution: num_tokens={len(self.edges)}, but {tokens.shape[1]} tokens came in')
        return tokens + self.drop_path(self.relu(self.update(self.edges @ tokens)))
