"""Settings in the form ``key=value``, as they are typed: numbers, texts, lists, dicts."""

import ast
import contextlib
import re
from collections.abc import Sequence
from typing import Any

from vt.errors import UserError

QUOTED = re.compile(r"""(['"])((?:(?!\1).)*)\1""")
WORD = re.compile(r"""('[^']*'|"[^"]*")|[^][(),\s][^][(),]*""")  # in quotes, or without, of a list
# Last parts of the keys of paths, which stay text: folders are named 2024, 1e3 or a,b.
PATHS = re.compile(r'load_from|data|weights|colours|(?!drop_path)(.*_)?(path|root|dir|file|folder|prefix|checkpoint)')


def parse_options(settings: Sequence[str]) -> dict[str, Any]:
    """Parse ``key=value`` settings; raise a UserError if one has another form."""
    options = {}
    for setting in settings:
        key, sign, text = setting.partition('=')
        if not sign:
            raise UserError(f'{setting!r} must have the form key=value')
        try:
            options[key] = parse_value(text, PATHS.fullmatch(key.rpartition('.')[2]) is not None)
        except (ValueError, SyntaxError, RecursionError) as error:
            words = "write a list as [a,b], and a dict with quotes around strings, {'type': 'A'}"
            raise UserError(f'{setting} cannot be parsed: {words}') from error
    return options


def parse_value(text: str, is_path: bool = False) -> Any:
    """Return the value of a setting; raise a ValueError or SyntaxError if it cannot be read."""
    if quoted := QUOTED.fullmatch(text):
        return quoted[2]
    is_dict = (text[:1], text[-1:]) == ('{', '}')
    if is_path and not is_dict:
        return None if text == 'None' else text
    is_python = is_dict or text[:2] == '[{' or 'dict(' in text
    if not (is_python or ',' in text or text[:1] in ('[', '(')):
        return _parse_word(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if is_python:
            raise
        value = ast.literal_eval(WORD.sub(lambda found: found[1] or repr(_parse_word(found[0])), text))
    if isinstance(value, tuple) and text[:1] != '(':
        value = list(value)
    if not isinstance(value, (list, tuple, dict)):
        raise ValueError(text)
    return value


def _parse_word(text: str) -> int | float | bool | str | None:
    """Return a number, True, False, None, or the text itself."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {'true': True, 'false': False, 'none': None}.get(text.lower(), text.strip())
