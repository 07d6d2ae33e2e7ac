"""Checks and printing of untrusted text: names of classes and files, and messages in files.

Text is checked where it is read, and printed without terminal control characters.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from .errors import UserError

MAX_NAME = 500  # characters; the longest of ImageNet-21k has 145
MAX_CLASSES = 100_000
# Unicode categories that names may not contain: control characters, surrogates, line separators.
CONTROL = ('Cc', 'Cs', 'Zl', 'Zp')
TURNS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # bidirectional control: they reorder a line on the screen


def is_control(letter: str) -> bool:
    """Return whether a character controls a terminal instead of being shown."""
    return unicodedata.category(letter) in CONTROL or ord(letter) in TURNS


def printable(text: Any, width: int | None = None) -> str:
    """Return a value as one line of at most ``width`` characters, with control characters escaped as ``\\x1b``."""
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

    Args:
        names: the value in the file.
        source: its location, which begins the error message.
        number: required number of names; None for any.

    Raises:
        UserError: not a sequence of strings, a wrong number of names, or a name that is empty, too long, not in UTF-8,
            or contains control characters.
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
    """Return a name from a file or folder; a UserError if it is empty, too long, or not plain text in UTF-8."""
    if not isinstance(name, str) or not name:
        raise UserError(f'{source} is {printable(repr(name), 80)}, not a text')
    if len(name) > MAX_NAME:
        raise UserError(f'{source} has {len(name):,} characters, {printable(name, 40)}; at most {MAX_NAME} are read')
    if any(unicodedata.category(letter) == 'Cs' for letter in name):  # bytes that Python could not decode
        advice = 'convert names to it, such as by convmv -f latin1 -t utf8 -r --notest FOLDER'
        raise UserError(f'{source} is not in UTF-8, {printable(name)}: {advice}')
    if any(map(is_control, name)):
        raise UserError(f'{source} holds control characters: {printable(name)}')
    return name


def check_palette(palette: Any, source: str, number: int | None = None) -> list:
    """Return the class colours in a file, none or ``number`` triples from 0 to 255; a UserError for anything else."""
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
    """Check class names and colours: ``classes`` and ``palette``, also in capitals. Both are optional.

    Args:
        meta: metadata of a data set in a file.
        before, after: text around a key in error messages.

    Raises:
        UserError: wrong names or colours, or a set of names, which has no order.
    """
    for names, colours in (('classes', 'palette'), ('CLASSES', 'PALETTE')):
        found, palette, source = meta.get(names), meta.get(colours), f'{before}{names}{after}'
        if isinstance(found, set):
            raise UserError(f'{source} is a set, which has no order')
        count = None if found is None else len(check_class_names(found, source))
        if palette is not None:
            check_palette(palette, f'{before}{colours}{after}', count)
