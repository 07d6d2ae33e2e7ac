"""Check settings about masks that must agree: ``ignore_index``, ``reduce_zero_label``, classes, palette."""

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

# Losses that mask pixels with their own ignore_index; others use the head's. In DiceLoss it is a class to ignore.
MASKING = ('TverskyLoss', 'HuasdorffDisstanceLoss')
REDUCED = 255  # label that MMSegmentation writes for the zero label and for classes that are not used


def find_ignored(cfg: Config, split: str, dataset: dict, masks: Masks | None) -> Iterator[Problem]:
    """Yield a problem (kind ``'settings'``) if settings have another ``ignore_index`` than the data set.

    Args:
        cfg: the config.
        split: split of the data set; ``'train'`` has losses, the others have metrics.
        dataset: config of the data set.
        masks: masks that were read. The check applies if the config sets ``ignore_index`` or the masks contain it.
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
        message = f'is {masks.ignore_index}, but {", ".join(others)}: set all to the label in the masks'
        yield Problem('settings', own, message)


def _places(cfg: Config, split: str, dataset: dict) -> Iterator[tuple[str, dict, str]]:
    """Yield path, config and argument of each setting that ignores pixels or pads masks."""
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
        if step.get('cat_max_ratio', 1.0) < 1:  # otherwise RandomCrop does not count labels
            yield path, step, 'ignore_index'


def _read(part: dict, name: str, scope: str, path: str) -> Any:
    """Return the value or the default of an argument of a part; None if it has no such argument."""
    if name in part or 'type' not in part:
        return part.get(name)
    for built in [part['type']] if callable(part['type']) else find_types(part['type'], scope, path):
        for owner in inspect.getmro(built) if inspect.isclass(built) else ():
            arguments = inspect.signature(vars(owner)['__init__']).parameters if '__init__' in vars(owner) else {}
            if name in arguments:
                return arguments[name].default
    return None


def check_palette(split: str, cfg: dict, built_by: type) -> None:
    """Check that the classes of a segmentation data set are among those of its type, with one colour each.

    Raises:
        UserError: a class is unknown, ``classes`` is a string, or the palette has another length.
    """
    if not hasattr(built_by, 'get_label_map'):
        return
    own, given = built_by.METAINFO, cfg.get('metainfo') or {}
    classes, known = given.get('classes') or own.get('classes'), own.get('classes')
    palette = given.get('palette') or own.get('palette')
    where = f'{split}_dataloader.dataset.metainfo'
    if isinstance(classes, str) and not Path(classes).is_file():  # probably a missing comma
        raise UserError(f'{where}.classes is the string {printable(classes, 80)!r}: set a list, or a file of names')
    if not isinstance(classes, (list, tuple)):
        return
    strange = [name for name in classes if known and name not in known]
    if strange:
        name = printable(repr(strange[0]), 80)
        message = f'{where}.classes has {name}, which is not a class of {built_by.__name__}'
        raise UserError(f"{message}: use its classes, or type='BaseSegDataset' with your own classes")
    is_subset = known and [*classes] != [*known]
    if palette and (len(palette) < len(classes) or (len(palette) > len(classes) and not is_subset)):
        message = f'{where}.palette has {len(palette)} colours for {len(classes)} classes'
        raise UserError(f'{message}: set one colour per class, or remove palette')


def find_setting_problems(dataset: BaseDataset, load_mask: Any) -> Iterator[Problem]:
    """Yield problems about settings of a segmentation data set that contradict each other or have side effects.

    ``load_mask`` is the step of its pipeline that loads masks, or None.
    """
    name, meta = type(dataset).__name__, dataset.metainfo
    reduces, asked = getattr(dataset, 'reduce_zero_label', None), getattr(load_mask, 'reduce_zero_label', None)
    if None not in (reduces, asked) and reduces != asked:
        message = f'has reduce_zero_label={reduces}, but its LoadAnnotations has reduce_zero_label={asked}'
        yield Problem('settings', name, f'{message}: set it only in the data set')
    classes, left_out = meta.get('classes') or (), getattr(dataset, 'label_map', None) or {}
    number = sum(new == REDUCED for new in left_out.values())
    if number:
        message = f'uses {len(classes)} of its {len(left_out)} classes'
        yield Problem('subset', name, f'{message}: pixels of the other {number} are ignored ({REDUCED})')
    published = getattr(type(dataset), 'METAINFO', {}).get('palette')  # ADE20K has a colour twice
    colours = [] if published else [tuple(map(int, colour)) for colour in meta.get('palette') or ()][: len(classes)]
    again = next((label for label, colour in enumerate(colours) if colour in colours[:label]), None)
    if again is not None:
        colour = colours[again]
        both = ' and '.join(repr(printable(classes[label], 60)) for label in (colours.index(colour), again))
        yield Problem('palette', name, f'has the same colour, {colour}, for {both}: overlays do not distinguish them')
