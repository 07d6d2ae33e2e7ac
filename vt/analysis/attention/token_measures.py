"""Measures of the attention of visual tokens (paper, section 6).

All functions compute in the floating-point type of their input; use float64 for exact results.
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
    """Compute the entropy of attention maps: ``E = -sum of A log A`` over the pixels, in nats (section 6).

    Args:
        attention: maps that sum to one, ``(..., H, W)``.

    Returns:
        Entropies, ``(...)``, from 0 (one pixel) to :func:`uniform_entropy`.
    """
    return torch.special.entr(attention).sum(dim=(-2, -1))


def uniform_entropy(height: int, width: int) -> float:
    """Entropy of a uniform map: ``ln(H W)`` nats, such as 12.318 at 473x473."""
    return math.log(height * width)


def foreground_and_background(
    labels: Tensor, background: Sequence[int], size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Compute the share of foreground and of background in each cell of a map's grid.

    Each cell averages over the pixels that it covers. Pixels with label 255 are neither.

    Args:
        labels: class of each pixel, ``(N, height, width)``, of any size.
        background: background classes; all others are foreground.
        size: H and W of the grid.

    Returns:
        Shares of foreground and of background in 0 to 1, ``(N, H, W)`` float64 each.
    """
    is_background = torch.isin(labels, torch.tensor(background, dtype=labels.dtype, device=labels.device))
    masks = torch.stack([~is_background, is_background], dim=1) & (labels != IGNORED_LABEL).unsqueeze(1)
    foreground, background = interpolate(masks.double(), size, mode='area').unbind(dim=1)
    return foreground, background


def attention_density(attention: Tensor, region: Tensor) -> Tensor:
    """Compute the mean attention of a pixel in a region, relative to the mean over all pixels.

    The foreground gain of the paper (section 6: 28.3 % on LIP) is the density on the foreground divided by that on the
    background, minus one. Section 6 does not say how images are averaged. Average densities over images before
    dividing: otherwise an image whose background gets almost no attention dominates.

    Args:
        attention: maps that sum to one, ``(N, L, H, W)``.
        region: share of the region in each cell, ``(N, H, W)``.

    Returns:
        Densities, ``(N, L)``: 1 for uniform attention, NaN for images in which the region is empty.
    """
    region = region.to(attention)
    shares = torch.einsum('nlhw,nhw->nl', attention, region)
    return shares / region.mean(dim=(-2, -1)).unsqueeze(-1)


class Moments(NamedTuple):
    """Moments of a distribution over positions, from which mean squared distances are computed.

    Positions are pixel centres in units of the image's diagonal, so that maps of different sizes are comparable.

    Attributes:
        mean: mean position, vertical and horizontal, ``(..., 2)``.
        square: mean squared distance from the corner of the image, ``(...)``.
    """

    mean: Tensor
    square: Tensor


def position_moments(attention: Tensor, image_size: tuple[int, int]) -> Moments:
    """Compute the moments of maps ``(..., H, W)`` that sum to one, for an image of height and width ``image_size``."""
    diagonal = math.hypot(*image_size)
    rows, columns = (
        (torch.arange(cells).to(attention) + 0.5) / cells * length / diagonal
        for cells, length in zip(attention.shape[-2:], image_size)
    )
    on_rows, on_columns = attention.sum(dim=-1), attention.sum(dim=-2)  # ..., H and ..., W
    mean = torch.stack([on_rows @ rows, on_columns @ columns], dim=-1)
    return Moments(mean, on_rows @ rows.square() + on_columns @ columns.square())


def interaction_moments(relation: Tensor, moments: Moments) -> Moments:
    r"""Compute the moments of the pixels that interact with each token, ``A_hat_l = sum over l' of W_ll' A_l'``
    (section 6).

    The moments of a mixture are the mixture of the moments. So A_hat is not computed, and the maps ``A_l'`` may differ
    in size, as in the levels of a feature pyramid.

    Args:
        relation: W, the self-attention of equation 3, ``(N, L, L)``; each row sums to one.
        moments: moments of the L attention maps, ``(N, L, 2)`` and ``(N, L)``.
    """
    return Moments(relation @ moments.mean, (relation @ moments.square.unsqueeze(-1)).squeeze(-1))


def mean_squared_distance(first: Moments, second: Moments) -> Tensor:
    """Mean squared distance between pixels drawn from two distributions, in squared diagonals, ``(...)``.

    Between A and A_hat of a token it is the reach: the distance between pixels that interact through the token. Between
    A and itself it is the spread, twice the variance of A. For two uniform maps of any shape it is ``1 / 6`` (less
    ``1 / 6`` of a pixel's squared diagonal), a root mean square of 0.408 diagonals.
    """
    product = (first.mean * second.mean).sum(dim=-1)
    return (first.square + second.square - 2 * product).clamp(min=0)  # rounding errors may be negative


def squared_shift(first: Moments, second: Moments) -> Tensor:
    """Squared distance between the mean positions of two distributions, in squared diagonals, ``(...)``.

    :func:`mean_squared_distance` is this plus the mean of the spreads of both distributions.
    """
    return (first.mean - second.mean).square().sum(dim=-1)


def measure_tokens(
    maps: Sequence[Tensor],
    relation: Tensor | None,
    image_size: tuple[int, int],
    labels: Tensor | None = None,
    background: Sequence[int] = (0,),
) -> list[dict[str, Tensor]]:
    """Compute all measures of the tokens of one relation, for each tokenizer.

    Args:
        maps: attention of each tokenizer, such as one per level of a pyramid, ``(N, L_i, H_i, W_i)``.
        relation: W over the tokens of all maps, ``(N, L, L)``; None if there is no self-attention.
        image_size: height and width of the image, which every map covers.
        labels: class of each pixel, ``(N, height, width)``; None without labels.
        background: background classes.

    Returns:
        A dict per tokenizer from names of measures to ``(N, L_i)``, a value per token, or ``(N, 1)``; NaN for measures
        that need W or labels if these are None. Distances are squared.
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
    """Compute the measures that need no relation; arguments and result as in :func:`measure_tokens`."""
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
