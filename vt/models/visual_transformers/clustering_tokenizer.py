"""The clustering-based tokenizer that the paper compares with (section 5.1, table 3).

Letters: N batch, C map channels, P = H * W pixels, L tokens.
"""

import torch
from torch import Tensor
from torch.nn.functional import interpolate, normalize, one_hot

from vt.ops.maps import to_pixels
from vt.registry import MODELS

from .pooling_tokenizer import nearest_square
from .tokenizer import AttentionTokenizer

ITERATIONS = 5  # of Lloyd's algorithm


@MODELS.register_module()
class ClusteringTokenizer(AttentionTokenizer):
    """Use the centroids of a k-means clustering of the image's pixels as filters, ``W_K = kmeans(X)``.

    The centroids replace W_A in equation 1 of the paper: ``A = softmax over HW of (X W_K)``, ``T = (A^T X) W_V``. The
    clustering has no parameters, and no gradient passes through it.

    Args:
        in_channels: C.
        token_channels: channels of a token.
        **kwargs: other options of :class:`AttentionTokenizer`, such as num_tokens (L), groups, norm_cfg, num_heads.
    """

    def __init__(self, in_channels: int, token_channels: int, **kwargs) -> None:
        super().__init__(in_channels, token_channels, **kwargs)
        self.grid = nearest_square(self.num_tokens)

    def filters(self, x: Tensor, tokens: Tensor | None) -> Tensor:
        return cluster_pixels(x, self.grid, ITERATIONS)


@torch.no_grad()
def cluster_pixels(x: Tensor, grid: tuple[int, int], iterations: int) -> Tensor:
    """Spherical k-means clustering of each image's pixels by Lloyd's algorithm.

    Pixels are normalised to unit length. The centroids are initialised with the map resized bilinearly to ``grid``, so
    the result is deterministic. A pixel is assigned to the centroid with the largest cosine similarity. A centroid
    without pixels is not updated.

    Args:
        x: feature map, ``(N, C, H, W)``.
        grid: rows and columns of the initial centroids; their product is L.
        iterations: number of iterations.

    Returns:
        Centroids of unit length, ``(N, L, C)``.
    """
    pixels = normalize(to_pixels(x), dim=-1)  # N, P, C
    centres = normalize(to_pixels(interpolate(x, grid, mode='bilinear', align_corners=False)), dim=-1)  # N, L, C
    for _ in range(iterations):
        nearest = (pixels @ centres.transpose(1, 2)).argmax(dim=-1)  # N, P
        members = one_hot(nearest, centres.shape[1]).to(pixels)  # N, P, L
        sums = members.transpose(1, 2) @ pixels  # N, L, C
        centres = torch.where(members.any(dim=1).unsqueeze(-1), normalize(sums, dim=-1), centres)
    return centres
