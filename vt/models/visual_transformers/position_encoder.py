"""The position encoder of the paper's first version (arXiv 2006.03677v1).

Letters: N batch, L tokens, C_T token channels, h heads, H and W map size, S grid size, C_P position channels.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, conv2d

from vt.registry import MODELS

from .grouped_linear import GroupedLinear


@MODELS.register_module()
class PositionEncoder(nn.Module):
    """Encode the position of tokens from their attention maps A: ``[T, P] W`` with ``P = downsample(A) W_{A->P}``.

    The maps of all heads are resized to S x S, downsampled by 3x3 convolutions of stride 2, reduced to one channel,
    flattened and mixed by a 1x1 convolution, all without biases.

    Resizing averages a map over the cells of the S x S grid and multiplies it by ``HW / S^2``, which preserves its sum,
    so the scale of the encoding does not depend on the image size. For the 14x14 maps of the paper it is the identity.

    The convolutions are initialised as averages, and W_{A->P} with ``gain * S^2`` times the standard deviation of LeCun
    initialisation: the positions have scale ``gain`` for any map size.

    Args:
        token_channels: C_T.
        num_heads: h, heads of the tokenizer.
        size: S, a multiple of ``2^downsamples``; 14 in the paper.
        downsamples: number of strided convolutions; ``C_P = S^2 / 4^downsamples``.
        gain: initial scale of the positions; it is small because they are similar for all tokens at the start.
    """

    def __init__(
        self, token_channels: int, num_heads: int = 1, size: int = 14, downsamples: int = 1, gain: float = 0.1
    ) -> None:
        super().__init__()
        self.size = size
        self.position_channels = (size // 2**downsamples) ** 2
        # Plain parameters, because backbones reinitialise every nn.Conv2d.
        average = torch.eye(num_heads)[..., None, None].expand(-1, -1, 3, 3) / 9  # no mixing of heads
        self.downsample = nn.ParameterList(nn.Parameter(average.clone()) for _ in range(downsamples))
        self.join_heads = nn.Parameter(torch.full((1, num_heads, 1, 1), 1 / num_heads))
        self.mix = GroupedLinear(self.position_channels, self.position_channels, gain=gain * size**2)
        self.merge = GroupedLinear(token_channels + self.position_channels, token_channels)

    def encode(self, maps: Tensor) -> Tensor:
        """Compute P: attention maps ``(N, h, L, H, W)`` to positions ``(N, L, C_P)``."""
        n, _, num_tokens, height, width = maps.shape
        grids = adaptive_avg_pool2d(maps.transpose(1, 2).flatten(0, 1), self.size)  # N * L, h, S, S
        grids = grids * (height * width / self.size**2)
        for weight in self.downsample:
            grids = conv2d(grids, weight, stride=2, padding=1)
        grids = conv2d(grids, self.join_heads)  # N * L, 1, S / 2^downsamples, S / 2^downsamples
        return self.mix(grids.reshape(n, num_tokens, self.position_channels))

    def forward(self, tokens: Tensor, maps: Tensor) -> Tensor:
        """Add the positions to the tokens.

        Args:
            tokens: ``(N, L, C_T)``.
            maps: attention maps of the tokens, ``(N, h, L, H, W)``, whose sum over H and W is one.

        Returns:
            Tokens, ``(N, L, C_T)``.
        """
        return self.merge(torch.cat([tokens, self.encode(maps)], dim=-1))
