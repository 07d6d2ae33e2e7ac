"""Where below a folder the outputs of many inputs go: each has its own place, and none lies outside of the folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from unicodedata import normalize

from vt.untrusted_text import printable

MAX_NAME, MAX_PLACE = 200, 1000  # bytes of a name, and of a path below the folder; file systems take 255, and 4096


def distinct_places(wished: Mapping[str, Path], suffix: str = '.png') -> dict[str, Path]:
    """A place below a folder for the output of each input.

    It is as wished, and ends in ``suffix``, where that is safe: without steps upwards, control characters and names
    that are too long. Of those that would be one file, or on some file systems (``A.png`` and ``a.png``), the first
    one has it, and the others end in ``-2``, ``-3`` and so on.
    """
    safe = {file: _inside(place) for file, place in wished.items()}
    safe = {file: place.with_name(f'{place.name.removesuffix(suffix)}{suffix}') for file, place in safe.items()}
    taken = {_key(folder) for place in safe.values() for folder in place.parents}  # a folder's name is no file's
    places: dict[str, Path] = {}
    next_number: dict[str, int] = {}
    for file, place in safe.items():
        plain = place
        while _key(place) in taken:
            number = next_number[_key(plain)] = next_number.get(_key(plain), 1) + 1
            place = plain.with_name(f'{plain.name.removesuffix(suffix)}-{number}{suffix}')
        taken.add(_key(place))
        places[file] = place
    return places


def _inside(place: Path) -> Path:
    names = [printable(part).replace('\\', '_') for part in place.parts]
    parts = [name.encode()[:MAX_NAME].decode(errors='ignore') for name in names]
    parts = [part for part in parts if part not in (place.anchor, os.curdir, os.pardir)] or ['unnamed']
    inside = Path(*parts)
    return inside if len(os.fsencode(inside)) <= MAX_PLACE else Path(inside.name)


def _key(place: Path) -> str:
    """Equal for places that some file systems hold to be one."""
    return normalize('NFC', normalize('NFC', str(place)).casefold())
