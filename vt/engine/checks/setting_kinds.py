"""What a setting of a config may be."""

import logging
import math
from collections.abc import Callable
from typing import Any, NamedTuple

PLAIN_TYPES = (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, range)


class Kind(NamedTuple):
    """What a setting may be.

    Attributes:
        allows: tells whether a value is of this kind.
        words: says it to the user.
    """

    allows: Callable[[Any], bool]
    words: str


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_part(value: Any) -> bool:
    """Something that can be built, or has been."""
    if isinstance(value, dict):
        return isinstance(value.get('type'), str) or callable(value.get('type'))
    return value is not None and not isinstance(value, (type, *PLAIN_TYPES))


def _is_pipeline(value: Any) -> bool:
    steps = (list, tuple)
    return isinstance(value, steps) and bool(value) and all(_is_part(step) or callable(step) for step in value)


def optional(kind: Kind) -> Kind:
    """This kind or None."""
    return Kind(lambda value: value is None or kind.allows(value), f'{kind.words}, or None')


COUNT = Kind(_is_count, 'a whole number of at least 1')
NOT_NEGATIVE = Kind(lambda value: type(value) is int and value >= 0, 'a whole number of at least 0')
RATE = Kind(lambda value: _is_number(value) and value >= 0, 'a number of at least 0')
SWITCH = Kind(lambda value: isinstance(value, bool), 'True or False')
TEXT = Kind(lambda value: isinstance(value, str) and bool(value) and '\0' not in value, 'a text')
SETTINGS = Kind(lambda value: isinstance(value, dict), 'a dict of settings')
PART = Kind(_is_part, "a dict with a 'type'")
PARTS = Kind(
    lambda value: isinstance(value, (list, tuple)) and all(_is_part(part) for part in value),
    "a list of dicts, each with a 'type'",
)
PART_OR_PARTS = Kind(lambda value: PART.allows(value) or PARTS.allows(value), "a dict with a 'type', or a list of them")
PIPELINE = Kind(_is_pipeline, "a list of steps, at least one, each a dict with a 'type'")
LEVEL = Kind(
    lambda value: isinstance(value, (str, int)) and value in {**logging._nameToLevel, **logging._levelToName},
    "'DEBUG', 'INFO', 'WARNING' or 'ERROR'",
)
