"""Set single settings of a config by their keys, as ``--cfg-options`` does."""

from collections.abc import Mapping
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.utils import import_modules_from_strings

from vt.errors import UserError


def apply_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Set ``--cfg-options`` in a config in place, and import the packages that a new ``custom_imports`` names.

    Dicts merge as in configs. The next index of a list appends a part: ``custom_hooks.1.type=EMAHook``. An option that
    does not fit the config is a UserError.
    """
    for key, value in options.items():
        name, *path = key.split('.')
        try:
            cfg[name] = _with_value(cfg.get(name), path, value)
        except (LookupError, TypeError, ValueError) as error:
            words = 'set the type to replace a part; an index of a list must exist, or be the next one to append a part'
            raise UserError(f'--cfg-options {key}={value}: the config has no such key ({error}); {words}') from error
    if any(key.split('.')[0] == 'custom_imports' for key in options):
        try:
            import_modules_from_strings(**cfg.custom_imports)
        except ImportError as error:
            raise UserError(f'--cfg-options custom_imports={dict(cfg.custom_imports)}: {error}') from error


def _with_value(place: Any, path: list[str], value: Any) -> Any:
    """Return a copy of ``place``, a part of a config, with a value set at ``path``."""
    if not path:
        if isinstance(value, (str, int, float)) and _holds_parts(place):
            raise TypeError('it is a dict with a type, or a list of such dicts')
        if not isinstance(value, dict) or place is None:
            return value
        merged = Config(dict(place=place))
        merged.merge_from_dict(dict(place=value))
        return merged.place
    name, *rest = path
    if place is None:
        place = [] if name == '0' else {}
    if isinstance(place, (list, tuple)):
        is_part = rest == ['type'] or (not rest and isinstance(value, dict))
        items = [*place, *([None] if is_part and name == str(len(place)) else [])]
        items[int(name)] = _with_value(items[int(name)], rest, value)
        return type(place)(items)
    if not isinstance(place, dict):
        raise TypeError(f'{name} cannot be set in {place!r}')
    copied = ConfigDict(place)
    copied[name] = _with_value(copied.get(name), rest, value)
    return copied


def _holds_parts(value: Any) -> bool:
    """Return whether a value is the config of a part, or a list of them."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(part, dict) and 'type' in part for part in parts)
