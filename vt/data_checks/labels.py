"""What each label means in the splits of a config: the names of the classes, and how many samples or pixels each has.

A data set numbers its classes by itself, from its folders, a file or its features, so one folder more or less, or one
capital letter, gives all labels after it another meaning. Names are therefore compared, not numbers of classes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from vt.datasets.shards import ShardSamples
from vt.engine.checks.classes import first_difference, labels_in, list_names

from .masks import Masks, find_mask_gaps, merge_masks
from .samples import Problem

FEW = 10  # samples of a class in training, below which it is named


@dataclass
class SplitLabels:
    """The labels of one data set."""

    split: str  # 'train', 'val' or 'test'
    source: str  # the folder or file that they come from
    names: tuple[str, ...] | None  # of the classes, by label, as the run shows them
    found: tuple[str, ...] | None = None  # the names that the data bring, by label
    folders: bool = False  # whether these are names of folders
    counts: Counter[int] = field(default_factory=Counter)  # samples of each label, and pixels of the masks
    masks: Masks | None = None  # those that were read

    def counts_by_name(self) -> dict[str, int]:
        """Samples, or pixels, of each class; by label where nothing names the classes."""
        names = enumerate(self.names) if self.names else ((label, str(label)) for label in sorted(self.counts))
        return {name: self.counts[label] for label, name in names}


def labels_of(split: str, dataset: BaseDataset, masks: Masks | None = None) -> SplitLabels:
    """The labels of a data set whose annotations are loaded, and of its masks."""
    names = dataset.metainfo.get('classes')
    names = None if names is None else tuple(map(str, names))
    infos = infos_of(dataset)
    counts = infos.count_labels() if isinstance(infos, ShardSamples) else Counter(chain(*map(labels_in, infos)))
    counts += masks.pixels if masks else Counter()
    prefix = dataset.data_prefix.get('img_path') if isinstance(dataset.data_prefix, dict) else dataset.data_prefix
    folder = str(prefix or dataset.data_root or type(dataset).__name__)
    numbers = getattr(dataset, 'folder_to_idx', None)
    if numbers:
        return SplitLabels(split, folder, names, tuple(sorted(numbers, key=numbers.get)), True, counts, masks)
    found = getattr(dataset, 'found_names', None) or _names_in_file(dataset.ann_file)
    return SplitLabels(split, str(dataset.ann_file or folder), names, found, False, counts, masks)


def infos_of(dataset: BaseDataset) -> Sequence[dict]:
    """What a data set says about each of its samples; nothing may change them."""
    infos = getattr(dataset, 'data_list', None)
    if isinstance(infos, Sequence) and len(infos) == len(dataset):  # not serialised: no copies
        return infos
    return [dataset.get_data_info(index) for index in range(len(dataset))]


def find_label_problems(splits: Sequence[SplitLabels]) -> list[tuple[str, Problem]]:
    """Splits with gaps in them and labels that differ between them; data sets of one split and classes count as one."""
    parts: dict[tuple, list[SplitLabels]] = {}
    for own in splits:
        parts.setdefault((own.split, own.names), []).append(own)
    found = []
    for (split, _), same in parts.items():
        masks = [own.masks for own in same if own.masks]
        counts = sum((own.counts for own in same), Counter())
        merged = replace(same[0], counts=counts, masks=merge_masks(masks) if masks else None)
        found += [(split, problem) for problem in find_gaps(merged)]
    return [*found, *compare_classes(splits)]


def compare_classes(splits: Sequence[SplitLabels]) -> Iterator[tuple[str, Problem]]:
    """Labels that do not mean what they seem to: the split, and the problem of its folder or file with its repair.

    Args:
        splits: of a config; the others are compared with the first one, in training ``'train'``.
    """
    for own in splits:
        for problem in _compare_with_config(own):
            yield own.split, problem
    for other in splits[1:]:
        if splits[0].names and other.names and splits[0].names != other.names:
            yield other.split, Problem('classes', other.source, _difference(splits[0], other))


def find_gaps(own: SplitLabels) -> Iterator[Problem]:
    """Classes that no sample has, or few have; labels that are hard to read.

    Only one class in the training data is an error (kind ``'one class'``), the others are warnings.
    """
    if own.masks:
        yield from find_mask_gaps(own.split, own.masks)
        return
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
        yield Problem('no samples', own.source, f'has no sample of {list_names(absent)}: {effect}')
    if own.split == 'train' and few:
        yield Problem('few samples', own.source, f'has fewer than {FEW} samples of {list_names(few)}')
    if own.folders and all(name.isdecimal() for name in names) and [*names] != sorted(names, key=int):
        label = next(label for label, name in enumerate(names) if label != int(name))
        message = f'has numbers as class folders, sorted as texts: label {label} is the folder {names[label]!r}'
        yield Problem('order', own.source, f'{message}; write them with leading zeros to have labels and names agree')


def tabulate_classes(splits: Sequence[SplitLabels]) -> list[dict[str, str]]:
    """A row a class: its label, its name, and how many samples (or pixels read) of it each split has."""
    number = max((len(own.names) if own.names else max(own.counts, default=-1) + 1 for own in splits), default=0)
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
        yield Problem('classes', own.source, f'has the hidden folder {hidden[0]}, which would be a class: remove it')
    if own.found is None or own.names is None:
        return
    settings = f'{own.split}_dataloader.dataset'
    if len(own.found) != len(own.names):
        message = f'has {len(own.found)} classes ({list_names(own.found)}), {settings} names {len(own.names)}'
        yield Problem('classes', own.source, f'{message}: give as many, or leave classes out')
    elif (label := first_difference(own.found, own.names)) is not None:
        what = 'folders, in alphabetical order,' if own.folders else 'file'
        message = f'holds {own.found[label]!r} under label {label}, {settings} calls it {own.names[label]!r}'
        yield Problem('classes', own.source, f'{message}: order classes as the {what} does, or leave classes out')


def _difference(first: SplitLabels, other: SplitLabels) -> str:
    """How the classes of a split differ from those of the first one, and what to do."""
    names, others = first.names or (), other.names or ()
    missing = [name for name in names if name not in others]
    extra = [name for name in others if name not in names]
    folders = first.folders and other.folders
    what = 'class folder' if folders else 'class'
    alike = {_letters(name): name for name in missing}
    for name in extra:
        if right := alike.get(_letters(name)):
            message = f'has the {what} {name!r}, {first.split} has {right!r}, so other labels would change'
            return f'{message} their meaning: rename {name!r} to {right!r}'
    if extra:
        repair = 'remove it, or make an empty folder of that name there' if folders else 'give both the same classes'
        return f'has the {what} {list_names(extra)}, which {first.split} ({first.source}) has not: {repair}'
    if missing:
        repair = f'make an empty folder {Path(other.source, missing[0])}' if folders else 'give both the same classes'
        message = (
            f'has no {what} {list_names(missing)}, which {first.split} has, so other labels would change their meaning'
        )
        return f'{message}: {repair}'
    label = next(label for label, (ours, theirs) in enumerate(zip(names, others)) if ours != theirs)
    message = f'calls label {label} {others[label]!r}, {first.split} calls it {names[label]!r}'
    return f'{message}: give both the same order of classes'


def _letters(name: str) -> str:
    """A name without upper and lower case, spaces, hyphens and underscores."""
    return ''.join(letter for letter in name.casefold() if letter.isalnum())
