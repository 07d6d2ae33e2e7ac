"""Apply the options of ``--cfg-options`` to a config."""

from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.utils import import_modules_from_strings

from vt.errors import UserError

from .config_parts import dicts_in


def apply_options(cfg: Config, options: dict[str, Any]) -> None:
    """Set ``--cfg-options`` in a config, and import the packages that a new ``custom_imports`` names.

    Args:
        cfg: config, changed in place.
        options: values by their dotted keys, such as ``model.backbone.depth``.

    Raises:
        UserError: an option does not fit the config, or a package cannot be imported.
    """
    for key, value in options.items():
        name, *path = key.split('.')
        if not (name and all(path)):
            raise UserError(f'--cfg-options {key}={value}: a part of the key is empty')
        try:
            cfg[name] = _with_value(cfg.get(name), path, value, name)
        except UserError as error:
            raise UserError(f'--cfg-options {key}={value}: {error}') from error
    if any(key.split('.')[0] == 'custom_imports' for key in options):
        try:
            import_modules_from_strings(**cfg.custom_imports)
        except (ImportError, TypeError) as error:
            raise UserError(f'--cfg-options: custom_imports={dict(cfg.custom_imports)}: {error}') from error


def _with_value(place: Any, path: list[str], value: Any, where: str) -> Any:
    """Return a copy of ``place``, a part of a config, with a value set at ``path``; dicts merge as in configs."""
    if not path:
        if isinstance(value, dict) and place is not None:
            merged = Config(dict(place=place))
            try:
                merged.merge_from_dict(dict(place=value))
            except TypeError as error:
                raise UserError(f'the config has no such key ({error})') from error
            return merged.place
        if value not in (None, [], ()) and _holds_parts(place) and not _holds_parts(value):
            inner = f'{where}.type' if isinstance(place, dict) else f'{where}.0.type'
            raise UserError(f'{where} is a part or a list of parts: set {inner} or its options')
        return value
    name, *rest = path
    if isinstance(place, (list, tuple)):
        numbers = [str(index) for index in range(len(place))]
        is_new = name == str(len(place)) and (rest == ['type'] or (not rest and _holds_parts(value)))
        if name not in numbers and not is_new:
            words = f'{where} is a list of length {len(place)}'
            more = f', set {where}.{len(place)}.type to append a part' if _holds_parts(place) else ''
            raise UserError(f'the config has no such key ({words}: use an index of it{more}, or set the whole list)')
        items = [*place, *([None] if is_new else [])]
        items[int(name)] = _with_value(items[int(name)], rest, value, f'{where}.{name}')
        return type(place)(items)
    if isinstance(place, dict) or (place is None and not name.isdigit()):
        copied = ConfigDict(place or {})
        copied[name] = _with_value(copied.get(name), rest, value, f'{where}.{name}')
        return copied
    raise UserError(f'the config has no such key ({where} is {place!r})')


def _holds_parts(value: Any) -> bool:
    """Return whether a value is the config of a part, or a list of them."""
    return any('type' in item for item in dicts_in(value))
