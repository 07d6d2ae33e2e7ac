"""Compare the meaning of labels between the splits of a config, and count samples or pixels of each class.

Data sets number their classes by folders, a file or features. One folder more, or another capital letter, changes the
meaning of all following labels. Therefore class names are compared, not numbers of classes.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from vt.datasets.hugging_face import RowSamples
from vt.engine.checks.classes import first_difference, labels_in, list_names
from vt.untrusted_text import composed, folded

from .masks import Masks, find_mask_gaps, merge_masks
from .samples import Problem


@dataclass
class SplitLabels:
    """Labels of one data set."""

    split: str  # 'train', 'val' or 'test'
    source: str  # folder or file of the labels
    names: tuple[str, ...] | None  # class names by label, as the run uses them
    found: tuple[str, ...] | None = None  # class names by label in the data
    folders: bool = False  # whether these are names of folders
    counts: Counter[int] = field(default_factory=Counter)  # samples, or pixels of masks, of each label
    masks: Masks | None = None  # masks that were read

    def counts_by_name(self) -> dict[str, int]:
        """Return the number of samples or pixels by class name, or by label without class names."""
        names = enumerate(self.names) if self.names else ((label, str(label)) for label in sorted(self.counts))
        return {name: self.counts[label] for label, name in names}


def labels_of(split: str, dataset: BaseDataset, masks: Masks | None = None) -> SplitLabels:
    """Return the labels of a data set whose annotations are loaded, and of its masks."""
    names = dataset.metainfo.get('classes')
    names = None if names is None else tuple(map(str, names))
    infos = infos_of(dataset)
    counts = infos.count_labels() if isinstance(infos, RowSamples) else Counter(chain(*map(labels_in, infos)))
    counts += masks.pixels if masks else Counter()
    prefix = dataset.data_prefix.get('img_path') if isinstance(dataset.data_prefix, dict) else dataset.data_prefix
    folder = str(prefix or dataset.data_root or type(dataset).__name__)
    numbers = getattr(dataset, 'folder_to_idx', None)
    if numbers:
        return SplitLabels(split, folder, names, tuple(sorted(numbers, key=numbers.get)), True, counts, masks)
    found = getattr(dataset, 'found_names', None) or _names_in_file(dataset.ann_file)
    return SplitLabels(split, str(dataset.ann_file or folder), names, found, False, counts, masks)


def infos_of(dataset: BaseDataset) -> Sequence[dict]:
    """Return the information of all samples of a data set; do not change it."""
    infos = getattr(dataset, 'data_list', None)
    if isinstance(infos, Sequence) and len(infos) == len(dataset):  # not serialised, so no copy is needed
        return infos
    return [dataset.get_data_info(index) for index in range(len(dataset))]


def find_label_problems(splits: Sequence[SplitLabels]) -> list[tuple[str, Problem]]:
    """Find classes without samples, counting all data sets of a split, and labels that differ between splits."""
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
    """Yield split and problem for labels whose meaning differs from the config or from the first split."""
    for own in splits:
        for message in _compare_with_config(own):
            yield own.split, Problem('classes', own.source, message)
    first = splits[0] if splits else None
    for other in splits[1:]:
        if first.names and other.names and [*map(composed, first.names)] != [*map(composed, other.names)]:
            yield other.split, Problem('classes', other.source, _difference(first, other))
        if bool(first.names) != bool(other.names) and first.counts and other.counts:
            named, numbered = (first, other) if first.names else (other, first)
            message = f'has labels without names, but {named.split} has {list_names(named.names)}, in this order'
            advice = f'if these are the same, set classes of {numbered.split}_dataloader.dataset to them'
            yield numbered.split, Problem('order', numbered.source, f'{message}: {advice}')


def find_gaps(own: SplitLabels) -> Iterator[Problem]:
    """Yield a problem about classes without samples; a single class in the training data is an error."""
    if own.masks:
        yield from find_mask_gaps(own.split, own.masks)
        return
    names = own.names or tuple(map(str, range(max(own.counts, default=-1) + 1)))
    absent = [name for label, name in enumerate(names) if not own.counts[label]]
    if not own.counts or len(names) < 2 or not absent:
        return
    if own.split == 'train' and len(absent) == len(names) - 1:
        (present,) = {*names} - {*absent}
        yield Problem('one class', own.source, f'has samples of only one class, {present!r}: nothing is learned')
    else:
        effect = 'it is not learned' if own.split == 'train' else 'its score has no meaning'
        yield Problem('no samples', own.source, f'has no sample of {list_names(absent)}: {effect}')


def tabulate_classes(splits: Sequence[SplitLabels]) -> list[dict[str, str]]:
    """Return a row per class: label, name, and number of samples (or pixels that were read) in each split."""
    number = max((len(own.names) if own.names else max(own.counts, default=-1) + 1 for own in splits), default=0)
    rows = []
    for label in range(number):
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


def _compare_with_config(own: SplitLabels) -> Iterator[str]:
    """Yield differences between the class names in the data and in the config."""
    hidden = [name for name in own.found or () if own.folders and name.startswith('.')]
    if hidden:
        yield f'has the hidden folder {hidden[0]}, which would be a class: remove it'
    if own.found is None or own.names is None:
        return
    settings = f'{own.split}_dataloader.dataset'
    if len(own.found) != len(own.names):
        found = f'has {len(own.found)} classes ({list_names(own.found)})'
        yield f'{found}, but {settings} has {len(own.names)}: set as many, or remove classes'
    elif (label := first_difference(own.found, own.names)) is not None:
        what = 'the folders in alphabetical order' if own.folders else 'the file'
        message = f'has {own.found[label]!r} as label {label}, but {settings} has {own.names[label]!r}'
        yield f'{message}: give classes the order of {what}, or remove classes'


def _difference(first: SplitLabels, other: SplitLabels) -> str:
    """Describe how the classes of a split differ from those of the first one, and what to do."""
    names, others = first.names or (), other.names or ()
    missing, extra = ([name for name in one if name not in two] for one, two in ((names, others), (others, names)))
    what = 'class folder' if first.folders and other.folders else 'class'
    alike = {_letters(name): name for name in missing}
    for name in extra:
        if right := alike.get(_letters(name)):
            same = composed(name) == composed(right)
            shown, wanted = (ascii(each) if same else repr(each) for each in (name, right))
            how = ' in another Unicode normalisation' if same else ''
            message = f'has the {what} {shown}, but {first.split} has {wanted}{how}, so the meaning of labels differs'
            return f'{message}: rename {shown} to {wanted}'
    if extra:
        advice = 'remove it, or give both the same, if need be an empty folder'
        return f'has the {what} {list_names(extra)}, which {first.split} ({first.source}) does not have: {advice}'
    if missing:
        message = f'does not have the {what} {list_names(missing)} of {first.split}, so the meaning of labels differs'
        return f'{message}: create an empty folder {Path(other.source, missing[0])}' if what != 'class' else message
    label = next(label for label, (ours, theirs) in enumerate(zip(names, others)) if ours != theirs)
    message = f'has {others[label]!r} as label {label}, but {first.split} has {names[label]!r}'
    return f'{message}: give both the same order of classes'


def _letters(name: str) -> str:
    """Return a name in lower case without spaces, hyphens and underscores."""
    return ''.join(letter for letter in folded(name) if letter.isalnum())
