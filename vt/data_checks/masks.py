"""Check the pixels of masks: labels outside the classes and classes without pixels, with advice.

A mapping of values to labels is only proposed, since its meaning cannot be known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mmengine.dataset import BaseDataset

from vt.untrusted_text import printable

from .samples import Problem, Sample

SHOWN = 6  # values or names in a message


@dataclass
class Masks:
    """Masks of a data set, or of several data sets of one split."""

    source: str  # folder of the masks
    names: Sequence[str]  # class names by label
    ignore_index: int  # label of pixels to ignore
    reduce_zero_label: bool  # whether 0 is ignored and other values are reduced by 1
    is_subset: bool  # whether the data set uses some of the classes of its type
    total: int  # number of samples of the data set
    samples: list[Sample]  # samples whose masks were read

    @cached_property
    def pixels(self) -> Counter[int]:
        """Number of pixels of each label, as the pipeline loads it."""
        pixels: Counter[int] = Counter()
        for counts in (sample.counts for sample in self.samples if sample.counts is not None):
            pixels.update({int(label): int(counts[label]) for label in counts.nonzero()[0]})
        return pixels

    @property
    def labels(self) -> list[int]:
        """Labels in the masks, without ``ignore_index``."""
        return sorted(self.pixels.keys() - {self.ignore_index})

    @property
    def values(self) -> list[int]:
        """Values in the files."""
        return sorted({label + self.reduce_zero_label for label in self.labels} | (self.pixels.keys() - {*self.labels}))

    @property
    def where(self) -> str:
        """Number of masks that were read, for messages."""
        read = len(self.samples)
        return f'{read:,}{"" if read == self.total else f" of {self.total:,}"} mask' + 's' * (self.total != 1)

    def name(self, label: int) -> str:
        """Return the name of a class, for messages."""
        return repr(printable(self.names[label], 60)) if label < len(self.names) else str(label)


def masks_of(dataset: BaseDataset, number: int | None, samples: Iterable[Sample]) -> Masks | None:
    """Collect the masks of samples, None without any; ``number`` of classes if the data set has no class names."""
    meta, prefix = dataset.metainfo, dataset.data_prefix if isinstance(dataset.data_prefix, dict) else {}
    read = [sample for sample in samples if sample.counts is not None]
    masks = Masks(
        str(prefix.get('seg_map_path') or dataset.data_root or type(dataset).__name__),
        [str(name) for name in meta.get('classes') or range(number or 0)],
        getattr(dataset, 'ignore_index', 255),
        bool(getattr(dataset, 'reduce_zero_label', False)),
        bool(getattr(dataset, 'label_map', None)),
        len(dataset),
        read,
    )
    return masks if read else None


def merge_masks(parts: Sequence[Masks]) -> Masks:
    """Merge the masks of several data sets of one split, with the settings of the first."""
    samples = [sample for part in parts for sample in part.samples]
    return replace(parts[0], total=sum(part.total for part in parts), samples=samples)


def explain_values(masks: Masks) -> str | None:
    """Describe values in masks that are not labels, with advice; None without any. The subject is "masks"."""
    number = len(masks.names)
    if not number or max(masks.labels, default=0) < number:
        return None
    advice = _explain(masks) or f'use labels from 0 to {number - 1}, or add classes'
    return f'contain {_shown(masks.values)} for {number} classes: {advice}'


def find_mask_gaps(split: str, masks: Masks) -> Iterator[Problem]:
    """Yield problems about classes without pixels, and images rotated without their masks.

    A single class in the training masks is an error (kind ``'one class'``) if all masks were read, or if some pixels
    are ignored; the others are warnings.
    """
    number = len(masks.names)
    present = {label for label in masks.labels if label < number}
    absent = [masks.name(label) for label in range(number) if label not in present]
    if masks.pixels and absent and number > 1:
        advice, is_whole = _explain(masks), len(masks.samples) == masks.total
        if split == 'train' and len(present) < 2 and (is_whole or masks.pixels[masks.ignore_index]):
            found = f'pixels of only one class, {masks.name(min(present))}' if present else 'no pixel of any class'
            message = f'has {found}, in {masks.where}: {advice or "nothing is learned"}'
            yield Problem('one class', masks.source, message)
        else:
            effect = advice or ('it is not learned' if split == 'train' else 'its score has no meaning')
            yield Problem('no samples', masks.source, f'has no pixel of {_shown(absent)} in {masks.where}: {effect}')
    turned = [sample.path for sample in masks.samples if sample.turned]
    if turned:
        others = f' (and {len(turned) - 1:,} more)' if len(turned) > 1 else ''
        message = f'is rotated by its EXIF orientation when it is read, but its mask is not{others}'
        yield Problem('turned', turned[0], f'{message}: check that masks fit the upright images')


def _explain(masks: Masks) -> str | None:
    """Return a possible reason why values are not labels, or a class has no pixels."""
    number, labels = len(masks.names), masks.labels
    if masks.is_subset:
        return None
    if masks.reduce_zero_label:
        hides = masks.pixels[masks.ignore_index] and max(labels, default=0) < number - 1
        effect = 'reduce_zero_label=True ignores 0 and reduces all other values by 1'
        return f'{effect}; set it to False if 0 is {masks.name(0)}' if hides else None
    if labels == [*range(1, len(labels) + 1)] and (len(labels) == number or len(labels) == number - 1 > 1):
        return f'if 1 is {masks.name(0)}, set reduce_zero_label=True'
    if labels == [*range(number + 1)]:
        return 'add the class of 0 to classes, or set reduce_zero_label=True to ignore it'
    return _mapping(masks)


def _mapping(masks: Masks) -> str | None:
    """Propose a label for each value if there are as many values as classes; 255 may be a class or ignored."""
    number = len(masks.names)
    for values in (masks.labels, masks.values):
        if len(values) == number and values != [*range(number)]:
            moved = [(label, value) for label, value in enumerate(values) if label != value]
            return f'replace {_shown([f"{value} by {label} ({masks.name(label)})" for label, value in moved])}'
    return None


def _shown(values: Sequence[Any]) -> str:
    shown = ', '.join(map(str, values[:SHOWN]))
    return shown if len(values) <= SHOWN else f'{shown} and {len(values) - SHOWN} more'
