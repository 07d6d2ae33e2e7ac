"""Count samples or pixels of each class, and compare the meaning of labels between the splits of a config.

Data sets number their classes by folders, a file or features. One folder more, or another capital letter, changes the
meaning of all following labels. Therefore class names are compared, not numbers of classes. If the values of masks are
not labels, a mapping is only proposed, since its meaning cannot be known.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from vt.datasets.folder_contents import table_in
from vt.engine.hooks.num_classes import IGNORED_LABEL, first_difference, list_names
from vt.untrusted_text import composed

from .samples import Problem, Sample

SHOWN = 6  # values in a message


@dataclass
class Labels:
    """Labels of a data set, or of all data sets of a split with the same classes."""

    split: str  # 'train', 'val' or 'test'
    source: str  # folder or file of the labels
    names: tuple[str, ...] | None  # class names by label, as the run uses them
    counts: Counter[int]  # samples, or pixels of masks, of each label
    found: tuple[str, ...] | None = None  # class names by label in the data
    folders: bool = False  # whether these are names of folders
    total: int = 0  # number of samples
    masks: int = 0  # number of masks that were read
    ignored: int | None = None  # label of pixels to ignore
    reduced: bool = False  # whether 0 in masks is ignored, and other values are reduced by 1
    is_subset: bool = False  # whether the data set uses some of the classes of its type, or draws its masks

    @property
    def number(self) -> int:
        """Number of classes."""
        return len(self.names) if self.names else max(self.present, default=-1) + 1

    @property
    def present(self) -> list[int]:
        """Labels in the data, without that of pixels to ignore."""
        return sorted(self.counts.keys() - {self.ignored})

    def name(self, label: int) -> str:
        """Return the name of a class; its label if it has none."""
        return self.names[label] if self.names and label < len(self.names) else str(label)

    def counts_by_name(self) -> dict[str, int]:
        """Return the number of samples or pixels by class name, or by label without class names."""
        return {self.name(label): self.counts[label] for label in (range(self.number) if self.names else self.present)}


def labels_of(split: str, dataset: BaseDataset, samples: Iterable[Sample], number: int | None) -> Labels:
    """Count the labels of a data set whose annotations are loaded; ``number`` of classes if they have no names."""
    counts, masks = Counter(), 0
    for sample in samples:
        counts.update(sample.labels)
        if sample.counts is not None:
            masks += 1
            counts.update({int(label): int(sample.counts[label]) for label in sample.counts.nonzero()[0]})
    names = dataset.metainfo.get('classes') or (masks and range(number or 0)) or None
    prefix = dataset.data_prefix.get('seg_map_path' if masks else 'img_path')
    folder = str(prefix or dataset.data_root or type(dataset).__name__)
    folders = getattr(dataset, 'folder_to_idx', None)
    found = sorted(folders, key=folders.get) if folders else getattr(dataset, 'found_names', None)
    return Labels(
        split,
        folder if masks or folders else str(dataset.ann_file or folder),
        names and tuple(map(str, names)),
        counts,
        found=tuple(found) if found else _names_in_file(dataset.ann_file),
        folders=bool(folders),
        total=len(dataset),
        masks=masks,
        ignored=getattr(dataset, 'ignore_index', IGNORED_LABEL) if masks else None,
        reduced=bool(getattr(dataset, 'reduce_zero_label', False)),
        is_subset=bool(getattr(dataset, 'label_map', None) or getattr(dataset, 'draws_masks', False)),
    )


def find_label_problems(splits: Sequence[Labels]) -> Iterator[tuple[str, Problem]]:
    """Yield split and problem: classes without samples in all data sets of a split, and labels that differ."""
    parts: dict[tuple, Labels] = {}
    for own in splits:
        same = parts.get((own.split, own.names))
        if same is not None:
            total, masks = same.total + own.total, same.masks + own.masks
            own = replace(same, counts=same.counts + own.counts, total=total, masks=masks)
        parts[own.split, own.names] = own
    for own in parts.values():
        yield from ((own.split, problem) for problem in find_label_gaps(own))
    yield from compare_classes(splits)


def compare_classes(splits: Sequence[Labels]) -> Iterator[tuple[str, Problem]]:
    """Yield split and problem for labels whose meaning differs from the config or from the first split."""
    for own in splits:
        for message in _compare_with_config(own):
            yield own.split, Problem('classes', own.source, message)
    for other in splits[1:]:
        first = splits[0]
        if first.names and other.names:
            pairs = zip_longest(map(composed, first.names), map(composed, other.names))
            differing = next(((label, *pair) for label, pair in enumerate(pairs) if len({*pair}) > 1), None)
            if differing is not None:
                label, expected, found = differing
                message = f'has {_class(found)} for label {label}, but {first.split} has {_class(expected)}'
                advice = 'use the same classes in the same order for both, if needed with empty folders'
                yield other.split, Problem('classes', other.source, f'{message}: {advice}')
        elif bool(first.names) != bool(other.names) and first.counts and other.counts:
            named, numbered = (first, other) if first.names else (other, first)
            message = f'has labels without class names, but {named.split} has {list_names(named.names)}, in this order'
            advice = f'if the classes are the same, set {numbered.split}_dataloader.dataset.classes to these names'
            yield numbered.split, Problem('order', numbered.source, f'{message}: {advice}')


def _class(name: str | None) -> str:
    return 'no class' if name is None else f'the class {name!a}'  # escaped, as names may look alike


def find_label_gaps(own: Labels) -> Iterator[Problem]:
    """Yield a problem about classes without samples or pixels.

    A single class in the training data is an error (kind ``'one class'``), unless it is one that some images have and
    others do not; of masks, if all were read or some pixels are ignored.
    """
    present = {label for label in own.present if label < own.number}
    absent = [own.name(label) for label in range(own.number) if label not in present]
    is_one = own.number == 1 and own.split == 'train' and not own.masks and own.counts.total() == own.total
    if not own.counts or not (absent or is_one):
        return
    what, advice = ('pixel', _explain(own)) if own.masks else ('sample', None)
    read = f'{own.masks:,}{"" if own.masks == own.total else f" of {own.total:,}"} mask' + 's' * (own.total != 1)
    where = f', in {read}' if own.masks else ''
    is_sure = own.masks in (0, own.total) or own.counts[own.ignored]
    if own.split == 'train' and len(present) < 2 and is_sure:
        found = f'{what}s of only one class, {own.name(min(present))!r}' if present else f'no {what} of any class'
        effect = advice or f'nothing is learned{table_in(own.source) if own.folders else ""}'
        yield Problem('one class', own.source, f'has {found}{where}: {effect}')
    else:
        effect = advice or ('it is not learned' if own.split == 'train' else 'its score has no meaning')
        yield Problem('no samples', own.source, f'has no {what} of {list_names(absent)}{where}: {effect}')


def find_values(own: Labels) -> Iterator[Problem]:
    """Yield a problem if values in masks are not labels, with advice."""
    if own.masks and own.number and max(own.present, default=0) >= own.number:
        advice = _explain(own) or f'use labels from 0 to {own.number - 1}, or add classes'
        words = f'has masks that contain {_shown(_values(own))} for {own.number} classes: {advice}'
        yield Problem('values', own.source, words)


def tabulate_classes(splits: Sequence[Labels]) -> list[dict[str, str]]:
    """Return a row per class: label, name, and number of samples (or pixels that were read) in each split."""
    rows = []
    for label in range(max((own.number for own in splits), default=0)):
        names = dict.fromkeys(composed(own.names[label]) for own in splits if own.names and label < len(own.names))
        counts = {own.split: f'{own.counts[label]:,}' for own in splits}
        rows.append(dict(label=str(label), name=' / '.join(names) or '-') | counts)
    return rows


def _names_in_file(path: Any) -> tuple[str, ...] | None:
    """Return the class names in an annotation file of OpenMMLab's JSON format."""
    if not str(path or '').endswith('.json') or not Path(path).is_file():
        return None
    content = json.loads(Path(path).read_bytes())
    classes = content.get('metainfo', {}).get('classes') if isinstance(content, dict) else None
    return tuple(map(str, classes)) if isinstance(classes, list) else None


def _compare_with_config(own: Labels) -> Iterator[str]:
    """Yield differences between the class names in the data and in the config."""
    found, names = own.found or (), own.names or ()
    if hidden := [name for name in found if own.folders and name.startswith('.')]:
        yield f'has the hidden folder {hidden[0]}, which would be a class: remove it'
    label = first_difference(found, names)
    if found and names and (label is not None or len(found) != len(names)):
        ours, theirs = (list_names(each[label or 0 :]) or 'no class' for each in (found, names))
        what = 'the folders in alphabetical order' if own.folders else 'the file'
        message = f'has {ours} from label {label or 0}, but {own.split}_dataloader.dataset has {theirs}'
        yield f'{message}: set classes in the order of {what}, or remove classes'


def _values(own: Labels) -> list[int]:
    """Return the values in the files of masks."""
    return sorted({label + own.reduced for label in own.present} | (own.counts.keys() - {*own.present}))


def _explain(own: Labels) -> str | None:
    """Return a possible reason why values of masks are not labels, or a class has no pixels."""
    number, labels = own.number, own.present
    if own.is_subset:
        return None
    if own.reduced:
        hides = own.counts[own.ignored] and max(labels, default=0) < number - 1
        effect = 'reduce_zero_label=True ignores 0 and reduces all other values by 1'
        return f'{effect}; set it to False if 0 is {own.name(0)!r}' if hides else None
    if labels == [*range(1, len(labels) + 1)] and (len(labels) == number or len(labels) == number - 1 > 1):
        return f'if 1 is {own.name(0)!r}, set reduce_zero_label=True'
    if labels == [*range(number + 1)]:
        return 'add the class of 0 to classes, or set reduce_zero_label=True to ignore it'
    for values in (labels, _values(own)):  # 255 may be a class or ignored
        if len(values) == number and values != [*range(number)]:
            moved = [(label, value) for label, value in enumerate(values) if label != value]
            return f'replace {_shown([f"{value} by {label} ({own.name(label)!r})" for label, value in moved])}'
    return None


def _shown(values: Sequence[Any]) -> str:
    shown = ', '.join(map(str, values[:SHOWN]))
    return shown if len(values) <= SHOWN else f'{shown} and {len(values) - SHOWN} more'
