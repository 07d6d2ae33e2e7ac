"""Settings about masks that have to fit each other: the number of ignored pixels, the zero label, classes, colours."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import METRICS, MODELS, TRANSFORMS, Registry

from vt.errors import UserError
from vt.untrusted_text import printable

from .masks import Masks
from .samples import Problem

Place = tuple[Registry, Any, str, str]  # of a part, the part, its path, and an argument
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
    ignore_index = masks.ignore_index
    found = [*(_of_model(cfg) if split == 'train' else _of_metrics(cfg, split)), *_of_pipeline(split, dataset)]
    others = []
    for registry, part, path, name in found:
        with registry.switch_scope_and_registry(cfg.get('default_scope')) as own:
            value = _read(own, part, name)
        if type(value) is int and value != ignore_index:
            others.append(f'{path}.{name}={value}')
    if others:
        own = f'{split}_dataloader.dataset.ignore_index' + ('' if 'ignore_index' in dataset else ' (by default)')
        yield Problem(
            'settings',
            own,
            f'is {ignore_index}, but {", ".join(dict.fromkeys(others))}: give all the number of the masks',
        )


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
    by_colour: dict[tuple, Any] = {}
    published = getattr(type(dataset), 'METAINFO', {}).get('palette')  # that of ADE20K has a colour twice
    for label, colour in enumerate(() if published else meta.get('palette') or ()):
        first = by_colour.setdefault(tuple(map(int, colour)), label)
        if first != label and label < len(classes):
            both = ' and '.join(repr(printable(classes[each], 60)) for each in (first, label))
            yield Problem(
                'palette', name, f'has one colour, {tuple(colour)}, for {both}: overlays do not tell them apart'
            )
            break


def _of_model(cfg: Config) -> Iterator[Place]:
    """Heads, their losses, and what fills masks up."""
    model = cfg.get('model') or {}
    model = model.get('module') or model
    for name in ('decode_head', 'auxiliary_head'):
        for head in _several(model.get(name)):
            yield MODELS, head, f'model.{name}', 'ignore_index'
            for loss in _several((head or {}).get('loss_decode')):
                if isinstance(loss, dict) and loss.get('type') in MASKING:
                    yield MODELS, loss, f'model.{name}.loss_decode', 'ignore_index'
    yield MODELS, model.get('data_preprocessor'), 'model.data_preprocessor', 'seg_pad_val'


def _of_metrics(cfg: Config, split: str) -> Iterator[Place]:
    for metric in _several(cfg.get(f'{split}_evaluator')):
        yield METRICS, metric, f'{split}_evaluator', 'ignore_index'


def _of_pipeline(split: str, dataset: dict) -> Iterator[Place]:
    """Steps that fill masks up, or count their labels."""
    for step in dataset.get('pipeline') or ():
        if isinstance(step, dict):
            path = f'{split}_dataloader.dataset.pipeline.{step.get("type")}'
            yield TRANSFORMS, step, path, 'seg_pad_val'
            if step.get('cat_max_ratio', 1.0) < 1:  # of RandomCrop, which counts only then
                yield TRANSFORMS, step, path, 'ignore_index'


def _several(part: Any) -> list[Any]:
    return [*part] if isinstance(part, (list, tuple)) else [part]


def _read(registry: Registry, part: Any, name: str) -> Any:
    """The value of an argument of a part, or its default; None where the part has no such argument."""
    if not isinstance(part, dict) or 'type' not in part or name in part:
        return (part or {}).get(name)
    built = part['type'] if callable(part['type']) else registry.get(part['type'])
    for owner in inspect.getmro(built) if inspect.isclass(built) else ():
        arguments = inspect.signature(vars(owner)['__init__']).parameters if '__init__' in vars(owner) else {}
        if name in arguments:
            return arguments[name].default
    return None
