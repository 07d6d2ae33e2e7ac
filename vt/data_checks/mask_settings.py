"""Settings about masks that have to fit each other: the number of ignored pixels, the zero label, classes, colours."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.dataset import BaseDataset

from vt.engine.checks.config import find_types
from vt.engine.checks.fit import heads_of
from vt.engine.config_parts import dicts_in, model_of
from vt.errors import UserError
from vt.untrusted_text import printable

from .masks import Masks
from .samples import Problem

# Losses that mask pixels by an ignore_index of their own; others take the head's. DiceLoss leaves out a class by it.
MASKING = ('TverskyLoss', 'HuasdorffDisstanceLoss')
REDUCED = 255  # what MMSegmentation writes for the zero label, and for classes that are left out


def find_ignored(cfg: Config, split: str, dataset: dict, masks: Masks | None) -> Iterator[Problem]:
    """Settings with another number for pixels to ignore than a data set (kind ``'settings'``).

    Args:
        cfg: a config.
        split: of the data set; ``'train'`` has losses, the others have metrics.
        dataset: its config.
        masks: those that were read. The data set's number counts where its config gives it, or where they hold it.
    """
    if masks is None or not (masks.pixels[masks.ignore_index] or 'ignore_index' in dataset):
        return
    scope, others = cfg.get('default_scope') or 'mmpretrain', {}
    for path, part, name in _places(cfg, split, dataset):
        value = _read(part, name, scope, path)
        if type(value) is int and value != masks.ignore_index:
            others[f'{path}.{name}={value}'] = value
    if others:
        own = f'{split}_dataloader.dataset.ignore_index' + ('' if 'ignore_index' in dataset else ' (by default)')
        message = f'is {masks.ignore_index}, but {", ".join(others)}: give all the number of the masks'
        yield Problem('settings', own, message)


def _places(cfg: Config, split: str, dataset: dict) -> Iterator[tuple[str, dict, str]]:
    """What ignores pixels or fills masks up: its path, its config and the argument that has the number."""
    if split == 'train':
        for path, head in heads_of(cfg):
            yield path, head, 'ignore_index'
            for loss in dicts_in(head.get('loss_decode')):
                if loss.get('type') in MASKING:
                    yield f'{path}.loss_decode', loss, 'ignore_index'
        for part in dicts_in(model_of(cfg).get('data_preprocessor')):
            yield 'model.data_preprocessor', part, 'seg_pad_val'
    else:
        for metric in dicts_in(cfg.get(f'{split}_evaluator')):
            yield f'{split}_evaluator', metric, 'ignore_index'
    for step in dicts_in(dataset.get('pipeline')):
        path = f'{split}_dataloader.dataset.pipeline.{step.get("type")}'
        yield path, step, 'seg_pad_val'
        if step.get('cat_max_ratio', 1.0) < 1:  # RandomCrop counts labels only then
            yield path, step, 'ignore_index'


def _read(part: dict, name: str, scope: str, path: str) -> Any:
    """The value of an argument of a part, or its default; None where the part has no such argument."""
    if name in part or 'type' not in part:
        return part.get(name)
    for built in [part['type']] if callable(part['type']) else find_types(part['type'], scope, path):
        for owner in inspect.getmro(built) if inspect.isclass(built) else ():
            arguments = inspect.signature(vars(owner)['__init__']).parameters if '__init__' in vars(owner) else {}
            if name in arguments:
                return arguments[name].default
    return None


def check_palette(split: str, cfg: dict, built_by: type) -> None:
    """A segmentation data set's classes are its type's, or some of them, and there is a colour for each.

    Raises:
        UserError: they are not.
    """
    if not hasattr(built_by, 'get_label_map'):
        return
    own, given = built_by.METAINFO, cfg.get('metainfo') or {}
    classes, known = given.get('classes') or own.get('classes'), own.get('classes')
    palette = given.get('palette') or own.get('palette')
    where = f'{split}_dataloader.dataset.metainfo'
    if isinstance(classes, str) and not Path(classes).is_file():  # a comma is missing
        raise UserError(f'{where}.classes is the text {printable(classes, 80)!r}: give a list, or a file of names')
    if not isinstance(classes, (list, tuple)):
        return
    strange = [name for name in classes if known and name not in known]
    if strange:
        name = printable(repr(strange[0]), 80)
        message = f'{where}.classes has {name}, which is no class of {built_by.__name__}'
        raise UserError(f"{message}: name classes of it, or take type='BaseSegDataset' with classes of your own")
    is_subset = known and [*classes] != [*known]
    if palette and (len(palette) < len(classes) or (len(palette) > len(classes) and not is_subset)):
        message = f'{where}.palette has {len(palette)} colours for {len(classes)} classes'
        raise UserError(f'{message}: give a colour a class, or leave palette out')


def find_setting_problems(dataset: BaseDataset, load_mask: Any) -> Iterator[Problem]:
    """Settings of a segmentation data set that contradict each other (kind ``'settings'``) or have side effects.

    Args:
        dataset: built.
        load_mask: the step of its pipeline that loads masks, or None.
    """
    name, meta = type(dataset).__name__, dataset.metainfo
    reduces, asked = getattr(dataset, 'reduce_zero_label', None), getattr(load_mask, 'reduce_zero_label', None)
    if None not in (reduces, asked) and reduces != asked:
        message = f'has reduce_zero_label={reduces}, its LoadAnnotations has reduce_zero_label={asked}'
        yield Problem('settings', name, f'{message}: set it in the data set alone')
    classes, left_out = meta.get('classes') or (), getattr(dataset, 'label_map', None) or {}
    number = sum(new == REDUCED for new in left_out.values())
    if number:
        message = f'takes {len(classes)} of its {len(left_out)} classes'
        yield Problem('subset', name, f'{message}: pixels of the other {number} are ignored ({REDUCED})')
    published = getattr(type(dataset), 'METAINFO', {}).get('palette')  # that of ADE20K has a colour twice
    colours = [] if published else [tuple(map(int, colour)) for colour in meta.get('palette') or ()][: len(classes)]
    again = next((label for label, colour in enumerate(colours) if colour in colours[:label]), None)
    if again is not None:
        colour = colours[again]
        both = ' and '.join(repr(printable(classes[label], 60)) for label in (colours.index(colour), again))
        yield Problem('palette', name, f'has one colour, {colour}, for {both}: overlays do not tell them apart')
