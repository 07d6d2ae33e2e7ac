"""Measure the attention of the visual tokens of a trained model over images (paper, section 6).

Letters: N batch, L tokens, H and W map size.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from vt.analysis.tables import print_table
from vt.engine.run_record import as_plain
from vt.errors import UserError
from vt.inference.test_set import preprocessed
from vt.models import AttentionTokenizer, Record, record_attention

from .token_measures import measure_tokens


def measure_tokenizers(
    model: nn.Module, dataset: Dataset, indices: Iterable[int], background: Sequence[int]
) -> dict[str, dict]:
    """Measure entropy, foreground gain and reach of a model's visual tokens on images of a test set.

    Maps, and the self-attention W of the relation, are averaged over heads; the paper's model has one head.

    Args:
        model: model with tokenizers.
        dataset: test set.
        indices: indices of the images.
        background: background classes; all others are foreground.

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


def tokenizers_by_owner(model: nn.Module) -> dict[str, list[str]]:
    """Names of the tokenizers with attention, by the name of the module whose ``relation`` takes their tokens."""
    parts = dict(model.named_modules())
    owners: dict[str, list[str]] = {}
    for name in [name for name, part in parts.items() if isinstance(part, AttentionTokenizer)]:
        owner = name.rpartition('.')[0]
        while owner and not hasattr(parts[owner], 'relation'):
            owner = owner.rpartition('.')[0]
        owners.setdefault(owner, []).append(name)
    return owners


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
    name, rows = f'{name}, {images} test images', tokenizers.items()
    entropies = [
        {
            'tokenizer': tokenizer,
            'map': row['map'] if ' ' not in row['map'] else 'several',
            'tokens': str(row['tokens']),
            'entropy': f'{row["entropy"]:.3f}',
            'of each token': f'{min(row["entropy_of_tokens"]):.2f} to {max(row["entropy_of_tokens"]):.2f}',
            'uniform': f'{row["uniform_entropy"]:.3f}',
            'times smaller': _show(row['times_smaller'], '.2f'),
            'more on foreground (%)': _show(row['foreground_gain'], '+.1f', 100),
        }
        for tokenizer, row in rows
    ]
    print_table(entropies, f'{name}: entropy of attention in nats, attention on a pixel of the foreground')
    left_out = next(iter(tokenizers.values()))['images_without_both_regions']
    if 0 < left_out < images:
        print(f'foreground: {left_out} images are not used, their labels have no foreground or no background')
    distances = [
        {
            'tokenizer': tokenizer,
            'A to A': f'{row["spread"]:.3f}',
            'A to Â': _show(row['reach'], '.3f'),
            'uniform': f'{row["uniform_spread"]:.3f}',
            'centre of A to of Â': _show(row['shift'], '.3f'),
            'W on other tokens (%)': _show(row['to_others'], '.1f', 100),
            'uniform W (%)': f'{100 * row["uniform_to_others"]:.1f}',
        }
        for tokenizer, row in rows
    ]
    print_table(distances, f'{name}: distance of interacting pixels, root mean square in diagonals')


def _show(value: float | None, form: str, factor: float = 1.0) -> str:
    return '' if value is None else f'{factor * value:{form}}'
