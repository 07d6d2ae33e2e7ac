"""Measures of the attention of visual tokens (paper, section 6).

All functions compute in the floating-point type of their input; use float64 for exact results.
Letters: N batch, L tokens, H and W size of the map.
"""

import math
from collections.abc import Sequence

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


def squared_distances(maps: Sequence[Tensor], relation: Tensor, image_size: tuple[int, int]) -> dict[str, Tensor]:
    """Compute mean squared distances of the pixels that interact through a token (section 6), in squared diagonals.

    A token l looks at pixels by A_l, and interacts with those of ``A_hat_l = sum over l' of W_ll' A_l'``. Distances
    follow from the mean positions and mean squares of both. Those of a mixture are the mixture of those of its parts,
    so A_hat is not computed, and the maps may differ in size, as in the levels of a feature pyramid.

    Args:
        maps: attention of each tokenizer, ``(N, L_i, H_i, W_i)``; maps sum to one.
        relation: W, the self-attention of equation 3 over the tokens of all maps, ``(N, L, L)``; rows sum to one.
        image_size: height and width of the image, which every map covers.

    Returns:
        ``(N, L)`` each: ``spread``, between pixels of A, twice its variance; ``reach``, between pixels of A and A_hat;
        ``shift``, between their mean positions. For uniform maps the spread is ``1 / 6``, less ``1 / 6`` of a pixel's
        squared diagonal, a root mean square of 0.408 diagonals.
    """
    mean, square = (
        torch.cat(parts, dim=1) for parts in zip(*(_position_moments(attention, image_size) for attention in maps))
    )
    reached, reached_square = relation @ mean, (relation @ square.unsqueeze(-1)).squeeze(-1)
    distances = dict(
        spread=2 * (square - mean.square().sum(dim=-1)),
        reach=square + reached_square - 2 * (mean * reached).sum(dim=-1),
        shift=(mean - reached).square().sum(dim=-1),
    )
    return {key: value.clamp(min=0) for key, value in distances.items()}  # rounding errors may be negative


def _position_moments(attention: Tensor, image_size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Mean position of maps ``(..., H, W)``, ``(..., 2)``, and mean square, in diagonals from the image's corner."""
    rows, columns = (
        (torch.arange(cells).to(attention) + 0.5) / cells * length / math.hypot(*image_size)
        for cells, length in zip(attention.shape[-2:], image_size)
    )
    on_rows, on_columns = attention.sum(dim=-1), attention.sum(dim=-2)  # ..., H and ..., W
    mean = torch.stack([on_rows @ rows, on_columns @ columns], dim=-1)
    return mean, on_rows @ rows.square() + on_columns @ columns.square()


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
    per_token = squared_distances(maps, relation, image_size)
    per_token['to_others'] = 1 - relation.diagonal(dim1=-2, dim2=-1)
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
    size, number = attention.shape[-2:], len(attention)
    regions = [attention.new_full((number, *size), math.nan)] * 2
    if labels is not None:
        regions = foreground_and_background(labels, background, size)
    shares = [length**2 / (image_size[0] ** 2 + image_size[1] ** 2) for length in image_size]
    spread = sum(share * (1 - cells**-2) for share, cells in zip(shares, size)) / 6
    return dict(
        entropy=attention_entropy(attention),
        uniform_entropy=attention.new_full((number, 1), uniform_entropy(*size)),
        on_foreground=attention_density(attention, regions[0]),
        on_background=attention_density(attention, regions[1]),
        uniform_spread=attention.new_full((number, 1), spread),
    )
