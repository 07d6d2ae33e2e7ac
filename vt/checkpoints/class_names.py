"""The description of a data set that a checkpoint brings: names and colours of its classes."""

from pathlib import Path
from typing import Any

from vt.errors import UserError
from vt.untrusted_text import check_class_names, check_palette, printable


def check_dataset_meta(meta: Any, path: Path) -> None:
    """Require that what a checkpoint says of its data set can be used and printed; it may say nothing.

    Args:
        meta: the checkpoint's ``meta``.
        path: the file, for errors.

    Raises:
        UserError: names of classes are no texts, too many, or hold control characters; colours are no triples of whole
            numbers up to 255, or not as many as there are names.
    """
    meta = _dict(meta, f'meta of {path}')
    dataset = _dict(meta.get('dataset_meta'), f'dataset_meta of {path}')
    for names, colours in (('classes', 'palette'), ('CLASSES', 'PALETTE')):
        count = None
        if dataset.get(names) is not None:
            source = f'dataset_meta.{names} of {path}'
            if isinstance(dataset[names], set):
                raise UserError(f'{source} is a set, which has no order')
            count = len(check_class_names(dataset[names], source))
        if dataset.get(colours) is not None:
            check_palette(dataset[colours], f'dataset_meta.{colours} of {path}', count)


def _dict(value: Any, source: str) -> dict:
    if value is not None and not isinstance(value, dict):
        raise UserError(f'{source} is {printable(repr(value), 80)}, where a dict is needed')
    return value or {}
