"""Checks and printing of untrusted text: names of classes and files, and messages in files.

Text is checked where it is read, and printed without terminal control characters.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from .errors import UserError

MAX_NAME = 500  # characters; the longest of ImageNet-21k has 145
# Unicode categories that names may not contain: control characters, surrogates, line separators.
CONTROL = ('Cc', 'Cs', 'Zl', 'Zp')
UNSEEN = {0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # byte order mark; what reorders a line


def is_control(letter: str) -> bool:
    """Return whether a character controls a terminal instead of being shown."""
    return unicodedata.category(letter) in CONTROL or ord(letter) in UNSEEN


def printable(text: Any, width: int | None = None) -> str:
    r"""Return a value as one line of at most ``width`` characters, with control characters escaped as ``\x1b``."""
    text = str(text)
    if width is not None and len(text) > width:
        text = f'{text[: width - 2]} …'
    if text.isprintable():
        return text
    return ''.join(ascii(letter)[1:-1] if is_control(letter) else letter for letter in text)


def composed(name: str) -> str:
    """Return a name with composed letters (NFC): archives of macOS write an accent as a character of its own."""
    return unicodedata.normalize('NFC', name)


def folded(name: str) -> str:
    """Return a form of a name that is equal for names that differ only in case or in Unicode normalisation."""
    return composed(composed(name).casefold())


def check_class_names(names: Any, source: str, number: int | None = None) -> tuple[str, ...]:
    """Check class names that a file contains, and return them.

    They must be a sequence of ``number`` strings, if given, each not empty, not too long, in UTF-8 and without control
    characters; or there is a UserError that begins with ``source``, their location.
    """
    if isinstance(names, (str, bytes)) or not isinstance(names, (Sequence, set, frozenset)):
        raise UserError(f'{source} is {printable(repr(names), 80)}, not a list of class names')
    for index, name in enumerate(names):
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or any(map(is_control, name)):
            words = f'must be 1 to {MAX_NAME} characters of UTF-8 without control characters'
            raise UserError(f'name {index} of {source} {words}, not {printable(repr(name), 80)}')
    if number is not None and len(names) != number:
        raise UserError(f'{source} has {len(names)} class names, but the model has {number} classes')
    return tuple(names)


def check_dataset_meta(meta: dict, before: str = '', after: str = '') -> None:
    """Check class names and colours: ``classes`` and ``palette``, also in capitals. Both are optional.

    Wrong ones, or a set of names, which has no order, are a UserError, with a text before and after the key.
    """
    for names, colours in (('classes', 'palette'), ('CLASSES', 'PALETTE')):
        found, palette, source = meta.get(names), meta.get(colours), f'{before}{names}{after}'
        if isinstance(found, set):
            raise UserError(f'{source} is a set, which has no order')
        count = None if found is None else len(check_class_names(found, source))
        if palette is not None and not _is_palette(palette, count):
            words = f'a list of colours, three numbers up to 255 for each of {count or "the"} classes'
            raise UserError(f'{before}{colours}{after} is {printable(repr(palette), 80)}, not {words}')


def _is_palette(palette: Any, count: int | None) -> bool:
    """Return whether a value is a list of colours: one for each class, or none."""
    if not isinstance(palette, (list, tuple)) or (palette and len(palette) != (count or len(palette))):
        return False
    triples = (colour if isinstance(colour, (list, tuple)) and len(colour) == 3 else [None] for colour in palette)
    return all(type(part) is int and 0 <= part <= 255 for triple in triples for part in triple)
