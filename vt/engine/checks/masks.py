"""What the pixels of masks say: labels beside the classes, colours, and classes without a pixel, with what would fit.

A mapping is proposed and never applied: only who made the masks knows what a value means.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mmengine.dataset import BaseDataset

from vt.untrusted_text import printable

from .samples import MOST_COLOURS, Colour, Problem, Sample

SHOWN = 6  # values, colours or names in a message


@dataclass
class Masks:
    """What the masks of a data set hold.

    Attributes:
        source: their folder.
        names: of the classes, by label.
        palette: colours of the classes; those of the data set.
        ignore_index: the label of pixels that don't count.
        reduce_zero_label: whether 0 is ignored, and 1 is taken off all other values.
        is_subset: whether the data set maps the labels of some classes of its own.
        total: samples of the data set.
        read: masks that were read.
        pixels: of each label, as the pipeline loads it.
        colours: of masks in colour.
        wide: values of masks of more than 8 bits.
        drawn: colours of each label, in files that have a palette.
        turned: images with an EXIF orientation that their masks may not share.
    """

    source: str
    names: Sequence[str]
    palette: Sequence[Colour] = ()
    ignore_index: int = 255
    reduce_zero_label: bool = False
    is_subset: bool = False
    total: int = 0
    read: int = 0
    pixels: Counter[int] = field(default_factory=Counter)
    colours: set[Colour] = field(default_factory=set)
    wide: set[int] = field(default_factory=set)
    drawn: dict[int, set[Colour]] = field(default_factory=dict)
    turned: list[Sample] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The masks that were read, as a message names them."""
        number = f'{self.read:,}' if self.read == self.total else f'{self.read:,} of {self.total:,}'
        return f'{number} mask' + 's' * (self.total != 1)


def masks_of(dataset: BaseDataset, number: int | None, samples: Iterable[Sample]) -> Masks | None:
    """What the masks of samples hold; None where there are none.

    Args:
        dataset: of the samples.
        number: of classes, where the data set names none.
        samples: of it, as they were read.
    """
    meta, prefix = dataset.metainfo, dataset.data_prefix if isinstance(dataset.data_prefix, dict) else {}
    names = [str(name) for name in meta.get('classes') or range(number or 0)]
    masks = Masks(
        str(prefix.get('seg_map_path') or dataset.data_root or type(dataset).__name__),
        names,
        [tuple(map(int, colour)) for colour in meta.get('palette') or ()],
        getattr(dataset, 'ignore_index', 255),
        bool(getattr(dataset, 'reduce_zero_label', False)),
        bool(getattr(dataset, 'label_map', None)),
        len(dataset),
    )
    for sample in samples:
        masks.read += sample.counts is not None or bool(sample.colours)
        if sample.counts is not None:
            masks.pixels.update({int(label): int(sample.counts[label]) for label in sample.counts.nonzero()[0]})
        for colour in sample.colours:
            masks.colours.add(colour) if isinstance(colour, tuple) else masks.wide.add(colour)
        for label, colour in sample.drawn:
            masks.drawn.setdefault(label, set()).add(colour)
        if sample.turned and sample.counts is not None:
            masks.turned.append(sample)
    return masks if masks.read else None


def merge_masks(parts: Sequence[Masks]) -> Masks:
    """What the masks of several data sets of one split hold, with the settings of the first."""
    merged = replace(parts[0], pixels=Counter(), drawn={}, turned=[])
    merged.total, merged.read = (sum(getattr(part, name) for part in parts) for name in ('total', 'read'))
    for part in parts:
        merged.pixels.update(part.pixels)
        merged.turned += part.turned
        for label, colours in part.drawn.items():
            merged.drawn.setdefault(label, set()).update(colours)
    return merged


def explain_values(masks: Masks) -> str | None:
    """Values that are no labels, all of them, and what would fit; None where there are none. A predicate of masks."""
    if masks.colours:
        return _explain_colours(masks)
    number, labels = len(masks.names), _labels(masks)
    if masks.wide:
        return f'hold the values {_shown(sorted(masks.wide))}: save them with 8 bits, labels 0 to {number - 1}'
    outside = [label for label in labels if label >= number]
    if not outside or not number:
        return None
    found = f'hold {_shown(_values(masks, labels))} for {number} classes'
    if masks.is_subset:
        return f'{found}: correct them, or classes'
    if labels[0] == 1 and labels[-1] == number and not masks.reduce_zero_label:
        return f'{found}: if 1 is {_name(masks, 0)}, set reduce_zero_label=True'
    if labels == [*range(number + 1)] and not masks.reduce_zero_label:
        return f'{found}: name the class of 0 too, or set reduce_zero_label=True to ignore it'
    return f'{found}: {_mapping(masks) or f"write labels from 0 to {number - 1}, or name more classes"}'


def find_mask_gaps(split: str, masks: Masks) -> Iterator[Problem]:
    """Classes without a pixel, colours of other classes, and images that are turned without their masks.

    Only one class with pixels in the training masks is an error (kind ``'one class'``) where all of them were read, or
    some pixels are ignored; the others are warnings.
    """
    present, number = {label for label in _labels(masks) if label < len(masks.names)}, len(masks.names)
    absent = [name for label, name in enumerate(masks.names) if label not in present]
    if masks.pixels and absent and number > 1:
        advice = _explain_gap(masks, present)
        if split == 'train' and len(present) < 2 and (masks.read == masks.total or masks.pixels[masks.ignore_index]):
            found = f'pixels of one class alone, {_name(masks, min(present))}' if present else 'no pixel of any class'
            message = f'has {found}, in {masks.where}: {advice or "nothing is learned"}'
            yield Problem('one class', masks.source, message)
        else:
            effect = advice or ('it is not learned' if split == 'train' else 'its score says nothing')
            shown = _shown([repr(printable(name, 60)) for name in absent])
            yield Problem('no samples', masks.source, f'has no pixel of {shown} in {masks.where}: {effect}')
    if (moved := _drawn_elsewhere(masks)) is not None:
        yield Problem('palette', masks.source, moved)
    if masks.turned:
        others = f' (as are {len(masks.turned) - 1:,} more)' if len(masks.turned) > 1 else ''
        message = f'is turned by its EXIF orientation when it is read, its mask is not{others}'
        advice = 'see that masks lie over the upright images'
        yield Problem('turned', masks.turned[0].path, f'{message}: {advice}')


def _labels(masks: Masks) -> list[int]:
    return sorted(label for label, pixels in masks.pixels.items() if pixels and label != masks.ignore_index)


def _values(masks: Masks, labels: Sequence[int]) -> list[int]:
    """Labels, and what is ignored, as the files hold them."""
    ignored = [masks.ignore_index] if masks.pixels[masks.ignore_index] else []
    return sorted({label + masks.reduce_zero_label for label in labels} | {*ignored})


def _explain_gap(masks: Masks, present: set[int]) -> str | None:
    """What may have left a class without a pixel."""
    number = len(masks.names)
    if masks.is_subset or max(_labels(masks), default=0) >= number:
        return None
    if masks.reduce_zero_label and masks.pixels[masks.ignore_index] and number - 1 not in present:
        return (
            f'reduce_zero_label=True ignores 0 and takes 1 off every other value; set it to False if 0 is '
            f'{_name(masks, 0)}'
        )
    if 0 not in present and present and not masks.reduce_zero_label and present == {*range(1, number)} and number > 2:
        return f'its labels begin at 1; if 1 is {_name(masks, 0)}, set reduce_zero_label=True'
    return _mapping(masks) if masks.pixels[masks.ignore_index] else None


def _mapping(masks: Masks) -> str | None:
    """As many values as classes, in their order: which label to write for each; 255 may be a class, or ignored."""
    number, labels = len(masks.names), _labels(masks)
    if masks.reduce_zero_label:
        return None
    for values in (labels, _values(masks, labels)):
        if len(values) == number and values != [*range(number)]:
            moved = [(label, value) for label, value in enumerate(values) if label != value]
            steps = [f'{label} ({_name(masks, label)}) where they hold {value}' for label, value in moved]
            return f'write {_shown(steps)}'
    return None


def _explain_colours(masks: Masks) -> str:
    by_colour = {colour: label for label, colour in reversed([*enumerate(masks.palette)])}
    known = sorted((by_colour[colour], colour) for colour in masks.colours if colour in by_colour)
    others = sorted(colour for colour in masks.colours if colour not in by_colour)
    number = f'more than {MOST_COLOURS}' if len(masks.colours) > MOST_COLOURS else len(masks.colours)
    found = f'hold {number} colours'
    if not known:
        return f'{found}, {_shown(others)}, none of the palette: write a label for each'
    steps = [f'{label} for {colour} ({_name(masks, label)})' for label, colour in known]
    rest = f'; {_shown(others)} {"is" if len(others) == 1 else "are"} not in the palette' if others else ''
    return f'{found}, {"those" if not others else "some"} of the palette: write {_shown(steps)}{rest}'


def _drawn_elsewhere(masks: Masks) -> str | None:
    """Labels that the files draw in the colours of other classes of the palette."""
    drawn = masks.drawn
    colours = [next(iter(found)) for found in drawn.values() if len(found) == 1]
    if masks.is_subset or len(drawn) < 2 or len(colours) < len(drawn) or not {*colours} <= {*masks.palette}:
        return None
    for label, colour in zip(drawn, colours):
        if label < len(masks.palette) and masks.palette[label] != colour:
            own = masks.palette.index(colour)
            message = f'has masks that draw the label {label}, {_name(masks, label)}, in the colour of'
            return f'{message} {_name(masks, own)}, {colour}: see that labels and palette have one order'
    return None


def _name(masks: Masks, label: int) -> str:
    return repr(printable(masks.names[label], 60)) if label < len(masks.names) else str(label)


def _shown(values: Sequence[Any]) -> str:
    shown = ', '.join(map(str, values[:SHOWN]))
    return shown if len(values) <= SHOWN else f'{shown} and {len(values) - SHOWN} more'
