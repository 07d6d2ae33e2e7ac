"""Untrusted text, which somebody else wrote: names of classes and files, messages of a file.

It is checked where it is read, and printed without what a terminal would obey.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from .errors import UserError

MAX_NAME = 500  # characters; the longest of ImageNet-21k has 145
MAX_CLASSES = 100_000
# Categories of Unicode that are no part of a name: control characters, halves of a pair, separators of lines.
CONTROL = ('Cc', 'Cs', 'Zl', 'Zp')
TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # they change the order in which a line is shown


def is_control(letter: str) -> bool:
    """Whether a terminal would obey a character rather than show it."""
    return unicodedata.category(letter) in CONTROL or ord(letter) in TURNS


def printable(text: Any, width: int | None = None) -> str:
    """``str`` of anything as one line of up to ``width`` characters; control characters are escaped, ``\\x1b``."""
    text = str(text)
    if width is not None and len(text) > width:
        text = f'{text[: width - 2]} …'
    if text.isprintable():
        return text
    return ''.join(ascii(letter)[1:-1] if is_control(letter) else letter for letter in text)


def check_class_names(names: Any, source: str, number: int | None = None) -> tuple[str, ...]:
    """Names of classes that a file brings, as many as ``number``; ``source``, where they stand, begins the error.

    Raises:
        UserError: they are no sequence of texts, too many or too few, too long, empty, or hold control characters.
    """
    if isinstance(names, (str, bytes)) or not isinstance(names, (Sequence, set, frozenset)):
        raise UserError(f'{source} is {printable(repr(names), 80)}, not a list of names of classes')
    if len(names) > MAX_CLASSES:
        raise UserError(f'{source} holds {len(names):,} names of classes; at most {MAX_CLASSES:,} are read')
    for index, name in enumerate(names):
        check_name(name, f'name {index} of {source}')
    if number is not None and len(names) != number:
        raise UserError(f'{source} holds {len(names)} names of classes, the model has {number} classes')
    return tuple(names)


def check_name(name: Any, source: str) -> str:
    """A name that a file or a folder brings; a UserError if it is empty, too long, or holds control characters."""
    if not isinstance(name, str) or not name:
        raise UserError(f'{source} is {printable(repr(name), 80)}, not a text')
    if len(name) > MAX_NAME:
        raise UserError(f'{source} has {len(name):,} characters, {printable(name, 40)}; at most {MAX_NAME} are read')
    if any(map(is_control, name)):
        raise UserError(f'{source} holds control characters: {printable(name)}')
    return name


def check_palette(palette: Any, source: str, number: int | None = None) -> list:
    """Colours of classes that a file brings, triples from 0 to 255, none or ``number`` of them; else a UserError."""
    if not isinstance(palette, (list, tuple)) or len(palette) > MAX_CLASSES:
        raise UserError(f'{source} is {printable(repr(palette), 80)}, not a list of colours')
    for index, colour in enumerate(palette):
        is_triple = isinstance(colour, (list, tuple)) and len(colour) == 3
        if not is_triple or not all(type(part) is int and 0 <= part <= 255 for part in colour):
            raise UserError(f'colour {index} of {source} is {printable(repr(colour), 80)}, not three numbers up to 255')
    if palette and number is not None and len(palette) != number:
        raise UserError(f'{source} holds {len(palette):,} colours for {number:,} classes')
    return [*palette]


def check_dataset_meta(meta: dict, before: str = '', after: str = '') -> None:
    """Check names and colours of classes, ``classes`` and ``palette``, or in capitals; there may be none.

    Args:
        meta: what a file says of its data set.
        before, after: what stands around a key in errors.
    """
    for names, colours in (('classes', 'palette'), ('CLASSES', 'PALETTE')):
        found, palette, source = meta.get(names), meta.get(colours), f'{before}{names}{after}'
        if isinstance(found, set):
            raise UserError(f'{source} is a set, which has no order')
        count = None if found is None else len(check_class_names(found, source))
        if palette is not None:
            check_palette(palette, f'{before}{colours}{after}', count)
