"""Where the attention of visual tokens goes, in numbers (paper, section 6).

Every function takes attention in any floating type and computes in it; give it float64 to be exact.
Letters: N batch, L tokens, H and W size of the map.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from vt.inference.test_set import IGNORED_LABEL


def attention_entropy(attention: Tensor) -> Tensor:
    """How evenly each map is spread: ``E = -sum of A log A`` over the pixels, in nats (section 6).

    Args:
        attention: maps that sum to one, ``(..., H, W)``.

    Returns:
        ``(...)``, from 0, all on one pixel, to :func:`uniform_entropy`.
    """
    return torch.special.entr(attention).sum(dim=(-2, -1))


def uniform_entropy(height: int, width: int) -> float:
    """Entropy of a map that gives every pixel the same, as a convolution does: ``ln(H W)`` nats, 12.318 at 473x473."""
    return math.log(height * width)


def foreground_and_background(
    labels: Tensor, background: Sequence[int], size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """How much of each cell of a map's grid is foreground, and how much background.

    A cell takes the mean over the pixels that it touches, so no label is lost, however small the grid. Pixels labelled
    255 are neither.

    Args:
        labels: class of each pixel, ``(N, height, width)``, of any size.
        background: the classes that are background; all others are foreground.
        size: H and W of the grid.

    Returns:
        Two shares of each cell's pixels in 0 to 1, ``(N, H, W)`` float64.
    """
    is_background = torch.isin(labels, torch.tensor(background, dtype=labels.dtype, device=labels.device))
    masks = torch.stack([~is_background, is_background], dim=1) & (labels != IGNORED_LABEL).unsqueeze(1)
    foreground, background = interpolate(masks.double(), size, mode='area').unbind(dim=1)
    return foreground, background


def attention_density(attention: Tensor, region: Tensor) -> Tensor:
    """Mean attention of a pixel in a region, as a multiple of the mean over all pixels.

    The paper's gain on the foreground (section 6: 28.3 % on LIP) is the density on the foreground divided by that on
    the background, minus one. Section 6 doesn't say how images are averaged; average densities first, then divide:
    an image whose background gets next to nothing would outweigh all others.

    Args:
        attention: maps that sum to one, ``(N, L, H, W)``.
        region: how much of each cell belongs to the region, ``(N, H, W)``.

    Returns:
        ``(N, L)``; 1 for uniform attention, NaN for an image in which the region is empty.
    """
    region = region.to(attention)
    shares = torch.einsum('nlhw,nhw->nl', attention, region)
    return shares / region.mean(dim=(-2, -1)).unsqueeze(-1)


class Moments(NamedTuple):
    """What a distribution over places needs to tell its mean squared distance to another.

    Places are pixel centres as fractions of the image's diagonal, so that maps of any size share them.

    Attributes:
        mean: mean place, vertical and horizontal, ``(..., 2)``.
        square: mean squared distance from the image's corner, ``(...)``.
    """

    mean: Tensor
    square: Tensor


def position_moments(attention: Tensor, image_size: tuple[int, int]) -> Moments:
    """Moments of maps ``(..., H, W)`` that sum to one and cover an image of height and width ``image_size``."""
    diagonal = math.hypot(*image_size)
    rows, columns = (
        (torch.arange(cells).to(attention) + 0.5) / cells * length / diagonal
        for cells, length in zip(attention.shape[-2:], image_size)
    )
    on_rows, on_columns = attention.sum(dim=-1), attention.sum(dim=-2)  # ..., H and ..., W
    mean = torch.stack([on_rows @ rows, on_columns @ columns], dim=-1)
    return Moments(mean, on_rows @ rows.square() + on_columns @ columns.square())


def interaction_moments(relation: Tensor, moments: Moments) -> Moments:
    r"""Moments of the pixels that interact with each token, ``A_hat_l = sum over l' of W_ll' A_l'`` (section 6).

    A mixture's moments are the mixture of the moments, so A_hat itself is never made, and the maps ``A_l'`` may differ
    in size, as those of a feature pyramid's levels do.

    Args:
        relation: W, the self-attention of equation 3, ``(N, L, L)``; each row sums to one.
        moments: of the L attention maps, ``(N, L, 2)`` and ``(N, L)``.
    """
    return Moments(relation @ moments.mean, (relation @ moments.square.unsqueeze(-1)).squeeze(-1))


def mean_squared_distance(first: Moments, second: Moments) -> Tensor:
    """Mean squared distance between a pixel drawn from each of two distributions, in squared diagonals, ``(...)``.

    Between a token's A and its A_hat it is the reach of the token's interactions: how far apart the pixels are that
    meet in it. Of A with itself it is A's own spread, twice A's variance. Two uniform maps are ``1 / 6`` apart (less
    ``1 / 6`` of a pixel's squared diagonal), whatever their shape: a root mean square of 0.408 diagonals.
    """
    product = (first.mean * second.mean).sum(dim=-1)
    return (first.square + second.square - 2 * product).clamp(min=0)  # a rounded 0 has a square root too


def squared_shift(first: Moments, second: Moments) -> Tensor:
    """Squared distance between the mean places of two distributions, in squared diagonals, ``(...)``.

    It is the part of :func:`mean_squared_distance` that is no spread: the rest is the mean of both's own spreads.
    """
    return (first.mean - second.mean).square().sum(dim=-1)


def measure_tokens(
    maps: Sequence[Tensor],
    relation: Tensor | None,
    image_size: tuple[int, int],
    labels: Tensor | None = None,
    background: Sequence[int] = (0,),
) -> list[dict[str, Tensor]]:
    """All measures of the tokens that one relation relates, for each of the maps they were made from.

    Args:
        maps: attention of each tokenizer, one for each level of a pyramid, ``(N, L_i, H_i, W_i)``.
        relation: W over the tokens of all maps, ``(N, L, L)``; None where the tokens are related in another way.
        image_size: height and width of the image, which every map covers.
        labels: class of each pixel, ``(N, height, width)``.
        background: the classes that are background.

    Returns:
        Of each tokenizer, by name, ``(N, L_i)``, a value for each token, or ``(N, 1)``; NaN for what needs a relation
        or labels that aren't there. Distances are squared.
    """
    lengths = [attention.shape[1] for attention in maps]
    if relation is None:
        relation = maps[0].new_full((len(maps[0]), sum(lengths), sum(lengths)), math.nan)
    moments = [position_moments(attention, image_size) for attention in maps]
    together = Moments(*(torch.cat(parts, dim=1) for parts in zip(*moments)))
    interacting = interaction_moments(relation, together)
    per_token = dict(
        spread=mean_squared_distance(together, together),
        reach=mean_squared_distance(together, interacting),
        shift=squared_shift(together, interacting),
        to_others=1 - relation.diagonal(dim1=-2, dim2=-1),
    )
    by_map = zip(*(values.split(lengths, dim=1) for values in per_token.values()))
    return [
        dict(zip(per_token, values))
        | _measure_map(attention, image_size, labels, background)
        | dict(uniform_to_others=attention.new_full((len(attention), 1), 1 - 1 / sum(lengths)))
        for attention, values in zip(maps, by_map)
    ]


def _measure_map(
    attention: Tensor, image_size: tuple[int, int], labels: Tensor | None, background: Sequence[int]
) -> dict[str, Tensor]:
    """What needs no relation; arguments and result as in :func:`measure_tokens`."""
    size = attention.shape[-2:]
    even = attention.new_full((len(attention), 1, *size), 1 / math.prod(size))
    regions = [even[:, 0] * math.nan] * 2
    if labels is not None:
        regions = foreground_and_background(labels, background, size)
    return dict(
        entropy=attention_entropy(attention),
        uniform_entropy=attention_entropy(even),
        on_foreground=attention_density(attention, regions[0]),
        on_background=attention_density(attention, regions[1]),
        uniform_spread=mean_squared_distance(*[position_moments(even, image_size)] * 2),
    )
