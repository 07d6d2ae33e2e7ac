"""The parts that the paper compares with: pooling and clustering tokenizers, graph convolution, none."""

import published_equations as published
import pytest
import torch
from comparisons import assert_same

from vt.models import ClusteringTokenizer, GraphConvolution, PoolingTokenizer
from vt.models.visual_transformers.clustering_tokenizer import ITERATIONS, cluster_pixels
from vt.models.visual_transformers.pooling_tokenizer import nearest_square

# N, C, H, W, L, C_T
SIZES = [(2, 8, 5, 3, 4, 12), (1, 8, 1, 1, 1, 8), (3, 12, 2, 7, 1, 4), (1, 16, 14, 14, 16, 32), (2, 12, 6, 4, 6, 12)]


def value_matrix(part):
    return None if isinstance(part.value, torch.nn.Identity) else part.value.dense()


def published_cell(sample, row, column, grid):
    """Bilinear interpolation of a map ``(C, H, W)`` at the centre of one cell."""
    (height, width), (y, x) = sample.shape[1:], (0, 0)
    y = max((row + 0.5) * height / grid[0] - 0.5, 0)
    x = max((column + 0.5) * width / grid[1] - 0.5, 0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    above = sample[:, top, left] * (1 - (x - left)) + sample[:, top, right] * (x - left)
    below = sample[:, bottom, left] * (1 - (x - left)) + sample[:, bottom, right] * (x - left)
    return above * (1 - (y - top)) + below * (y - top)


def published_pooling(part, x):
    rows, columns = part.grid
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    pooled = torch.stack([torch.stack([published_cell(sample, *cell, part.grid) for cell in cells]) for sample in x])
    w_v = value_matrix(part)
    return pooled if w_v is None else pooled @ w_v


def published_centres(sample, grid, iterations):
    """k-means of the pixels of one map ``(C, H, W)``, pixel by pixel."""
    pixels = [pixel / pixel.norm() for pixel in published.pixels(sample.detach())]
    cells = [published_cell(sample.detach(), r, c, grid) for r in range(grid[0]) for c in range(grid[1])]
    centres = [cell / cell.norm() for cell in cells]
    for _ in range(iterations):
        members = [[] for _ in centres]
        for pixel in pixels:
            likeness = [float(pixel @ centre) for centre in centres]
            members[likeness.index(max(likeness))].append(pixel)
        for index, group in enumerate(members):
            if group:
                centres[index] = sum(group) / sum(group).norm()
    return torch.stack(centres)


def published_clustering(part, x):
    samples = []
    for sample in x:
        centres = published_centres(sample, part.grid, ITERATIONS)
        samples.append(published.filter_tokenizer(published.pixels(sample), centres.T, value_matrix(part)))
    return torch.stack(samples)


@pytest.mark.parametrize('size', SIZES)
@pytest.mark.parametrize(
    ('kind', 'equation'), [(PoolingTokenizer, published_pooling), (ClusteringTokenizer, published_clustering)]
)
def test_tokenizers_equal_their_definitions_with_gradients(kind, equation, size):
    n, c, h, w, num_tokens, c_t = size
    torch.manual_seed(sum(size))
    part, x = kind(c, c_t, num_tokens=num_tokens).double(), torch.randn(n, c, h, w).double().requires_grad_()
    assert part(x).shape == (n, num_tokens, c_t)
    assert_same(part(x), equation(part, x), [x, *part.parameters()])


@pytest.mark.parametrize('size', SIZES)
def test_graph_convolution_equals_its_definition_with_gradients(size):
    torch.manual_seed(sum(size))
    n, num_tokens, c_t = size[0], size[4], size[5]
    part = GraphConvolution(c_t, num_tokens).double()
    tokens = torch.randn(n, num_tokens, c_t, dtype=torch.float64, requires_grad=True)
    theirs = torch.stack([t + (part.edges @ t).clamp(min=0) for t in tokens])
    assert_same(part(tokens), theirs, [tokens, *part.parameters()])


def test_a_centre_that_loses_its_pixels_stays():
    x = torch.ones(1, 3, 2, 2)
    assert torch.allclose(cluster_pixels(x, (2, 2), 3), torch.full((1, 4, 3), 3**-0.5))


@pytest.mark.parametrize(('cells', 'grid'), [(1, (1, 1)), (8, (2, 4)), (16, (4, 4)), (32, (4, 8)), (7, (1, 7))])
def test_grid_of_the_cells(cells, grid):
    assert nearest_square(cells) == grid


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
@pytest.mark.parametrize('kind', [PoolingTokenizer, ClusteringTokenizer])
def test_half_precision_is_near_float64(kind, dtype):
    """Pixels in four well-separated groups, so that rounding moves none of them to another cluster."""
    torch.manual_seed(0)
    groups = torch.eye(4, 16)[torch.arange(64).reshape(8, 8) // 16].permute(2, 0, 1)
    x = (groups + 0.05 * torch.randn(2, 16, 8, 8)).to(dtype)
    part = kind(16, 32, num_tokens=4).to(dtype)
    half = part(x).double()
    tolerance = 32 * torch.finfo(dtype).eps
    torch.testing.assert_close(half, part.double()(x.double()), rtol=tolerance, atol=tolerance)
