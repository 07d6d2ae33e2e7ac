"""What each label means in the splits of a config: the names of the classes, and how many samples or pixels each has.

A data set numbers its classes by itself, from its folders, a file or its features, so one folder more or less, or one
capital letter, gives all labels after it another meaning. Names are therefore compared, not numbers of classes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from vt.untrusted_text import printable

from .samples import Problem, labels_in

SHOWN = 3  # names in a message
FEW = 10  # samples of a class in training, below which it is named


@dataclass
class SplitLabels:
    """The labels of one data set.

    Attributes:
        split: ``'train'``, ``'val'`` or ``'test'``.
        source: the folder or file that the labels come from.
        names: of the classes, by label, as the run shows them; None where nothing names them.
        found: the names that the data bring, by label; None where they bring none.
        folders: whether these are names of folders.
        counts: samples of each label; pixels of those masks that were read.
        total: samples.
    """

    split: str
    source: str
    names: tuple[str, ...] | None
    found: tuple[str, ...] | None = None
    folders: bool = False
    counts: Counter[int] = field(default_factory=Counter)
    total: int = 0

    @property
    def settings(self) -> str:
        """Path of the data set in the config."""
        return f'{self.split}_dataloader.dataset'


def labels_of(split: str, dataset: BaseDataset) -> SplitLabels:
    """The labels of a data set whose annotations are loaded."""
    names = dataset.metainfo.get('classes')
    names = None if names is None else tuple(map(str, names))
    infos = infos_of(dataset)
    counts = Counter(label for info in infos for label in labels_in(info))
    prefix = dataset.data_prefix.get('img_path') if isinstance(dataset.data_prefix, dict) else dataset.data_prefix
    folder = str(prefix or dataset.data_root or type(dataset).__name__)
    if getattr(dataset, 'folder_to_idx', None):
        found = tuple(sorted(dataset.folder_to_idx, key=dataset.folder_to_idx.__getitem__))
        return SplitLabels(split, folder, names, found, True, counts, len(infos))
    found = getattr(dataset, 'found_names', None) or _names_in_file(dataset.ann_file)
    return SplitLabels(split, str(dataset.ann_file or folder), names, found, False, counts, len(infos))


def infos_of(dataset: BaseDataset) -> list[dict]:
    """What a data set says about each of its samples; nothing may change them."""
    infos = getattr(dataset, 'data_list', None)
    if isinstance(infos, list) and len(infos) == len(dataset):  # not serialised: no copies
        return infos
    return [dataset.get_data_info(index) for index in range(len(dataset))]


def compare_classes(splits: Sequence[SplitLabels]) -> Iterator[tuple[str, Problem]]:
    """Labels that do not mean what they seem to: the split, and the problem of its folder or file with its repair.

    Args:
        splits: of a config; the others are compared with the first one, in training ``'train'``.
    """
    for own in splits:
        for problem in _compare_with_config(own):
            yield own.split, problem
    for other in splits[1:]:
        first = splits[0]
        if first.names and other.names and first.names != other.names:
            yield other.split, Problem('classes', other.source, _difference(first, other))


def compare_with_checkpoint(classes: Sequence[str], trained: Sequence[str], name: str, where: str) -> str | None:
    """Which label a checkpoint knows by another name, as a line; None where the names agree.

    Names of which none is in both lists, as in two languages, are taken for the same classes.

    Args:
        classes: of the data.
        trained: those that the checkpoint was trained with.
        name: of the checkpoint.
        where: the data are, or the setting is.
    """
    classes, trained = [*map(str, classes)], [*map(str, trained)]
    if not {each.casefold() for each in classes} & {each.casefold() for each in trained}:
        return None
    if len(classes) != len(trained):
        return f'{name} was trained with {len(trained)} classes ({_list(trained)}), {where} has {len(classes)}'
    label = _first_difference(classes, trained)
    if label is None:
        return None
    return f'{name} was trained with {trained[label]!r} as label {label}, {where} has {classes[label]!r} there'


def find_gaps(own: SplitLabels) -> Iterator[Problem]:
    """Classes that no sample has, or few have; labels that are hard to read.

    Only one class in the training data is an error (kind ``'one class'``), the others are warnings.
    """
    names = own.names or tuple(map(str, range(max(own.counts, default=-1) + 1)))
    if not own.counts or len(names) < 2:
        return
    present = [name for label, name in enumerate(names) if own.counts[label]]
    absent = [name for label, name in enumerate(names) if not own.counts[label]]
    few = [name for label, name in enumerate(names) if 0 < own.counts[label] < FEW]
    if own.split == 'train' and len(present) == 1:
        yield Problem('one class', own.source, f'has samples of one class alone, {present[0]!r}: nothing is learned')
    elif absent:
        effect = 'it is not learned' if own.split == 'train' else 'its score says nothing'
        yield Problem('no samples', own.source, f'has no sample of {_list(absent)}: {effect}')
    if own.split == 'train' and few:
        yield Problem('few samples', own.source, f'has fewer than {FEW} samples of {_list(few)}')
    if own.folders and all(name.isdecimal() for name in names) and [*names] != sorted(names, key=int):
        label = next(label for label, name in enumerate(names) if label != int(name))
        message = f'has numbers as class folders, sorted as texts: label {label} is the folder {names[label]!r}'
        yield Problem('order', own.source, f'{message}; write them with leading zeros to have labels and names agree')


def tabulate_classes(splits: Sequence[SplitLabels]) -> list[dict[str, str]]:
    """A row a class: its label, its name, and how many samples (or pixels read) of it each split has."""
    number = max((max(len(own.names or ()), *(label + 1 for label in own.counts), 0) for own in splits), default=0)
    rows = []
    for label in range(number):
        names = dict.fromkeys(own.names[label] for own in splits if own.names and label < len(own.names))
        counts = {own.split: f'{own.counts[label]:,}' for own in splits}
        rows.append(dict(label=str(label), name=' / '.join(names) or '-') | counts)
    return rows


def _names_in_file(path: Any) -> tuple[str, ...] | None:
    """The classes that an annotation file in OpenMMLab's JSON names."""
    if not str(path or '').endswith('.json') or not Path(path).is_file():
        return None
    content = json.loads(Path(path).read_bytes())
    classes = content.get('metainfo', {}).get('classes') if isinstance(content, dict) else None
    return tuple(map(str, classes)) if isinstance(classes, list) else None


def _compare_with_config(own: SplitLabels) -> Iterator[Problem]:
    """The names that the data bring against those that the config gives for the same labels."""
    hidden = [name for name in own.found or () if own.folders and name.startswith('.')]
    if hidden:
        message = f'has the hidden folder {hidden[0]}, which would be a class: remove it'
        yield Problem('classes', own.source, message)
    if own.found is None or own.names is None or own.found == own.names:
        return
    what = 'folders, in alphabetical order,' if own.folders else 'file'
    if len(own.found) != len(own.names):
        message = f'has {len(own.found)} classes ({_list(own.found)}), {own.settings} names {len(own.names)}'
        yield Problem('classes', own.source, f'{message}: give as many, or leave classes out')
    elif {name.casefold() for name in own.found} & {name.casefold() for name in own.names}:
        label = _first_difference(own.found, own.names)
        if label is None:  # only upper and lower case differ
            return
        message = f'holds {own.found[label]!r} under label {label}, {own.settings} calls it {own.names[label]!r}'
        yield Problem('classes', own.source, f'{message}: order classes as the {what} does, or leave classes out')


def _difference(first: SplitLabels, other: SplitLabels) -> str:
    """How the classes of a split differ from those of the first one, and what to do."""
    missing = [name for name in first.names if name not in other.names]
    extra = [name for name in other.names if name not in first.names]
    what = 'class folder' if first.folders and other.folders else 'class'
    if not missing and not extra:
        label = _first_difference(first.names, other.names, exactly=True)
        message = f'calls label {label} {other.names[label]!r}, {first.split} calls it {first.names[label]!r}'
        return f'{message}: give both the same order of classes'
    alike = _alike(missing, extra)
    if alike is not None:
        wrong, right = alike
        message = f'has the {what} {wrong!r}, {first.split} has {right!r}, so other labels would change their meaning'
        return f'{message}: rename {wrong!r} to {right!r}'
    if extra:
        message = f'has the {what} {_list(extra)}, which {first.split} ({first.source}) has not'
        if what == 'class':
            return f'{message}: give both the same classes'
        return f'{message}: remove it, or make an empty folder of that name there'
    message = f'has no {what} {_list(missing)}, which {first.split} has, so other labels would change their meaning'
    if what == 'class':
        return f'{message}: give both the same classes'
    return f'{message}: make an empty folder {Path(other.source, missing[0])}'


def _alike(missing: Sequence[str], extra: Sequence[str]) -> tuple[str, str] | None:
    """Two names that differ in upper and lower case, spaces, hyphens or underscores alone: the second split's first."""

    def plain(name: str) -> str:
        return ''.join(letter for letter in name.casefold() if letter.isalnum())

    by_plain = {plain(name): name for name in missing}
    return next(((name, by_plain[plain(name)]) for name in extra if plain(name) in by_plain), None)


def _first_difference(ours: Sequence[str], theirs: Sequence[str], exactly: bool = False) -> int | None:
    """The first label that two lists of names name differently."""
    pairs = enumerate(zip(ours, theirs))
    return next((label for label, (a, b) in pairs if a != b and (exactly or a.casefold() != b.casefold())), None)


def _list(names: Sequence[str]) -> str:
    shown = ', '.join(repr(printable(name, 60)) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f'{shown} and {len(names) - SHOWN} more'
