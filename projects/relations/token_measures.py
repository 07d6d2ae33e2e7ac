"""Measure the attention of the visual tokens of a trained model over images (paper, section 6): the command ``tokens``.

Functions of maps compute in the floating-point type of their input; use float64 for exact results.
Letters: N batch, L tokens, H and W size of the map.
"""

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torch.utils.data import Dataset

from docs.reports.records import write_measured
from vt.analysis.tables import print_table
from vt.engine.hooks.num_classes import IGNORED_LABEL
from vt.errors import UserError
from vt.explorer.inspection import tokenizers_by_owner
from vt.files import as_plain
from vt.models import Record, record_attention

from .trained import prepare, preprocessed

# Titles of the printed tables; of each column the measure and its format.
TABLES = {
    'entropy of attention in nats, attention on a pixel of the foreground': {
        'entropy': ('entropy', '.3f'),
        'uniform': ('uniform_entropy', '.3f'),
        'times smaller': ('times_smaller', '.2f'),
        'more on foreground': ('foreground_gain', '+.1%'),
    },
    'distance of interacting pixels, root mean square in diagonals': {
        'A to A': ('spread', '.3f'),
        'A to Â': ('reach', '.3f'),
        'uniform': ('uniform_spread', '.3f'),
        'centre of A to of Â': ('shift', '.3f'),
        'W on other tokens': ('to_others', '.1%'),
        'uniform W': ('uniform_to_others', '.1%'),
    },
}


def report_tokens(args: argparse.Namespace) -> None:
    """Print entropy, gain on the foreground and reach of a model's visual tokens; write them to ``--out``."""
    model, dataset, indices, origin = prepare(args)
    rows = measure_tokenizers(model, dataset, indices, args.background)
    print_tokenizers(rows, Path(args.config).stem, len(indices))
    write_measured(args.out, **origin, background=args.background, tokenizers=rows)


def measure_tokenizers(
    model: nn.Module, dataset: Dataset, indices: Iterable[int], background: Sequence[int]
) -> dict[str, dict]:
    """Measure entropy, foreground gain and reach of a model's visual tokens on images of a test set.

    Maps, and the self-attention W of the relation, are averaged over heads; the paper's model has one head. Classes
    that are not ``background`` are foreground.

    Returns:
        For each tokenizer the size of its maps and the measures, averaged over images and, unless named ``of_tokens``,
        over tokens; None for measures that are not available.

    Raises:
        UserError: the model has no tokenizer with attention; ``background`` is not a class of the data set.
    """
    owners = tokenizers_by_owner(model)
    if not owners:
        raise UserError('the model has no tokenizer with attention: give a model with visual tokens')
    num_classes = len(dataset.metainfo['classes'])
    if not all(0 <= index < num_classes for index in background):
        raise UserError(f'--background {background}: the classes of the data set are 0 to {num_classes - 1}')
    measured: dict[str, list[dict[str, Tensor]]] = {name: [] for names in owners.values() for name in names}
    sizes = {name: set() for name in measured}
    for inputs, labels in preprocessed(model, dataset, indices):
        with torch.no_grad(), record_attention(model) as records:
            model(inputs, mode='tensor')
        for owner, names in owners.items():
            values = measure_records(records, owner, names, inputs.shape[-2:], labels, background)
            for name, value in zip(names, values):
                measured[name].append(value)
                sizes[name].add('{}x{}'.format(*records[name].attention.shape[-2:]))
    return {name: dict(map=' '.join(sorted(sizes[name]))) | _summarise(images) for name, images in measured.items()}


def measure_records(
    records: dict[str, Record],
    owner: str,
    tokenizers: Sequence[str],
    image_size: tuple[int, int],
    labels: Tensor | None = None,
    background: Sequence[int] = (0,),
) -> list[dict[str, Tensor]]:
    """Compute all measures of :func:`measure_tokens` for the tokenizers of one module, from maps averaged over heads.

    W is not used if the relation has no self-attention, or relates other tokens than those of the tokenizers.
    """
    maps = [records[name].attention.mean(dim=1).double() for name in tokenizers]  # N, L, H, W each
    related = records.get(f'{owner}.relation'.removeprefix('.'))
    relation = None if related is None else related.attention.mean(dim=1).double()  # N, L, L
    if relation is not None and relation.shape[-1] != sum(attention.shape[1] for attention in maps):
        relation = None
    return measure_tokens(maps, relation, image_size, labels, background)


def _summarise(images: list[dict[str, Tensor]]) -> dict:
    """Average the measures over images, and over tokens or per token; None for measures that are not available."""
    values = {key: torch.cat([image[key] for image in images]).cpu() for key in images[0]}  # images, L or 1
    entropies = values['entropy'].mean(dim=0)  # L
    shows_both = (values['on_foreground'] + values['on_background']).isfinite().all(dim=1)  # images
    foreground, background = (values[f'on_{region}'][shows_both].mean(dim=0) for region in ('foreground', 'background'))
    summary = dict(
        tokens=len(entropies),
        images=len(images),
        images_without_both_regions=int((~shows_both).sum()),
        entropy=entropies.mean(),
        entropy_of_tokens=entropies,
        uniform_entropy=values['uniform_entropy'].mean(),
        times_smaller=values['uniform_entropy'].mean() / entropies.mean(),
        foreground_gain=foreground.mean() / background.mean() - 1,
        foreground_gain_of_tokens=foreground / background - 1,
        **{key: values[key].mean().sqrt() for key in ('spread', 'uniform_spread', 'reach', 'shift')},
        **{key: values[key].mean() for key in ('to_others', 'uniform_to_others')},
    )
    return as_plain(summary)


def print_tokenizers(tokenizers: dict[str, dict], name: str, images: int) -> None:
    """Print the results of :func:`measure_tokenizers` as tables with a row per tokenizer."""
    for title, columns in TABLES.items():
        rows = [
            dict(tokenizer=tokenizer, map=row['map'], tokens=str(row['tokens']))
            | {name: '' if row[key] is None else format(row[key], form) for name, (key, form) in columns.items()}
            for tokenizer, row in tokenizers.items()
        ]
        print_table(rows, f'{name}, {images} test images: {title}')
    left_out = next(iter(tokenizers.values()))['images_without_both_regions']
    if 0 < left_out < images:
        print(f'foreground: {left_out} images are not used, their labels have no foreground or no background')


def attention_entropy(attention: Tensor) -> Tensor:
    """Entropy of attention maps ``(..., H, W)``: ``E = -sum of A log A`` over the pixels, in nats (section 6)."""
    return torch.special.entr(attention).sum(dim=(-2, -1))


def uniform_entropy(height: int, width: int) -> float:
    """Entropy of a uniform map: ``ln(H W)`` nats, such as 12.318 at 473x473."""
    return math.log(height * width)


def foreground_and_background(
    labels: Tensor, background: Sequence[int], size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Compute the share of foreground and of background in each cell of a map's grid, ``(N, H, W)`` float64 each.

    Each cell averages over the pixels that it covers, of labels ``(N, height, width)`` of any size. Pixels with label
    255 are neither.
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

    Maps ``(N, L, H, W)`` sum to one; the region is its share in each cell, ``(N, H, W)``. Densities are ``(N, L)``: 1
    for uniform attention, NaN for images in which the region is empty.
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
    """Compute all measures of the tokens of one relation, for each tokenizer, such as one per level of a pyramid.

    Args:
        maps: attention of each tokenizer, ``(N, L_i, H_i, W_i)``.
        relation: W over the tokens of all maps, ``(N, L, L)``; None if there is no self-attention.
        image_size: height and width of the image, which every map covers.
        labels, background: class of each pixel, ``(N, height, width)``, if known, and background classes.

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
    shares = [length**2 / (image_size[0] ** 2 + image_size[1] ** 2) for length in image_size]
    measured = []
    for attention, values in zip(maps, by_map):
        number, _, *size = attention.shape
        foreground = behind = attention.new_full((number, *size), math.nan)
        if labels is not None:
            foreground, behind = foreground_and_background(labels, background, size)
        uniform = dict(
            uniform_entropy=uniform_entropy(*size),
            uniform_spread=sum(share * (1 - cells**-2) for share, cells in zip(shares, size)) / 6,
            uniform_to_others=1 - 1 / sum(lengths),
        )
        measured.append(
            dict(
                zip(per_token, values),
                entropy=attention_entropy(attention),
                on_foreground=attention_density(attention, foreground),
                on_background=attention_density(attention, behind),
                **{name: attention.new_full((number, 1), value) for name, value in uniform.items()},
            )
        )
    return measured
