"""Schema of the config of a saved model: parts of a fixed list with plain arguments.

A folder is untrusted. A type must be one of :data:`vt.apis.saved_types.TYPES` or a registered part of the user, an
argument one of this part's own, and a value a number, a list, a part, or one of the strings that the argument takes.
"""

import inspect
from typing import Any

from mmengine.registry import MODELS as ROOT

from vt._libraries import import_library
from vt.engine.checks.config import accepted_arguments
from vt.errors import UserError
from vt.registry import import_every_part
from vt.untrusted_text import printable

from .saved_types import STRINGS, TYPES, WORD

SCOPES = ('mmpretrain', 'mmseg')
LIBRARIES = ('mmcv', 'mmengine', 'mmpretrain', 'mmseg', 'timm', 'torch', 'torchvision', 'transformers')
# Not saved, because only training needs it: initial weights and augmentations.
TRAINING = ('init_cfg', 'layer_inits', 'pretrained', 'train_cfg', 'batch_augments', 'sampler')
TAUGHT = ('vt.DistilledClassifier', 'vt.TokenLabelClassifier')  # saved as an ImageClassifier, with equal predictions
BESIDE = ('type', '_scope_')  # removed by builders before they call a type
LARGEST = 2**17  # number that a saved model may contain


def describe_model(model: dict, scope: str) -> dict:
    """Return a model's config for a folder, without settings of training, checked by :func:`check_model`."""
    described = _without_training(model, scope)
    check_model(described, scope)
    return described


def _without_training(value: Any, scope: str) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_without_training(item, scope) for item in value)
    if not isinstance(value, dict):
        return value
    scope = value.get('_scope_', scope)  # mmengine enters it where a config inherits one of another package
    kept = {key: _without_training(item, scope) for key, item in value.items() if key not in TRAINING}
    if value.get('type') not in TAUGHT:
        return kept
    arguments, _ = accepted_arguments(find_part('ImageClassifier', scope))
    return dict({key: item for key, item in kept.items() if key in arguments}, type='ImageClassifier')


def check_model(model: Any, scope: str) -> None:
    """Raise a UserError with the key of a value that a folder may not contain, before anything is built."""
    if not isinstance(model, dict) or 'type' not in model:
        raise UserError('model has no type')
    _check_part(model, 'model', scope)


def _check_part(part: dict, where: str, scope: str) -> None:
    scope = part.get('_scope_', scope)
    if scope not in SCOPES:
        raise UserError(f'{where}._scope_={printable(repr(scope), 80)} is none of {", ".join(SCOPES)}')
    kind = find_part(part['type'], scope)
    if kind is None:
        reason = f'{where}.type={printable(repr(part["type"]), 80)} is none of the types of saved models'
        advice = 'models with other parts are shared as a checkpoint (tools/publish.py) and a config'
        raise UserError(f'{reason}: if the part is yours, import its package first; {advice}')
    takes_any = _package(kind) not in LIBRARIES and accepted_arguments(kind)[1]
    known = {*BESIDE, 'requires_grad', *(name for owner in inspect.getmro(kind) for name in _own_arguments(owner))}
    known -= {*TRAINING}
    for key, value in part.items():
        if key not in known and not (takes_any and WORD.fullmatch(key) and key not in TRAINING):
            name = printable(repr(key), 80)
            raise UserError(f'{where}: a saved {kind.__name__} has no argument {name}; leave it out')
        if key not in BESIDE:
            _check_value(value, f'{where}.{key}', (kind, key), scope)


def _check_value(value: Any, where: str, owner: tuple[type, str], scope: str) -> None:
    if isinstance(value, dict) and 'type' in value:
        _check_part(value, where, scope)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not (isinstance(key, str) and WORD.fullmatch(key)) or key in TRAINING:
                raise UserError(f'{where} has the key {printable(repr(key), 80)}, which is not allowed: leave it out')
            _check_value(item, f'{where}.{key}', (owner[0], key), scope)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_value(item, f'{where}.{index}', owner, scope)
    elif isinstance(value, str):
        known = _strings(*owner)
        if not (WORD.fullmatch(value) if known is WORD else value.lower() in map(str.lower, known)):
            words = 'a name' if known is WORD else ', '.join(map(repr, known)) or 'no string'
            raise UserError(f'{where}={printable(repr(value), 80)} is not allowed in a saved model: it takes {words}')
    elif isinstance(value, (int, float)) and not -LARGEST <= value <= LARGEST:
        raise UserError(f'{where}={printable(value, 80)} is not a number up to {LARGEST:,}')
    elif not (value is None or isinstance(value, (bool, int, float))):
        raise UserError(f'{where} is {printable(repr(value), 80)}: only strings and numbers can be saved')


def _strings(kind: type, argument: str) -> Any:
    """Return the strings that an argument takes, or :data:`WORD` for any name, which parts of users take."""
    names = [owner.__name__ for owner in inspect.getmro(kind)]
    for types, strings in STRINGS:
        if argument in strings and any(name in names for name in types.split()):
            return strings[argument]
    if _package(kind) not in ('vt', *LIBRARIES):
        return WORD
    tables = [getattr(kind, name) for name in dir(kind) if name.startswith('arch')] if argument == 'arch' else []
    return [name for table in tables if isinstance(table, dict) for name in table if isinstance(name, str)]


def _package(kind: type) -> str:
    return kind.__module__.partition('.')[0]


def _own_arguments(owner: type) -> tuple[str, ...]:
    code = getattr(vars(owner).get('__init__'), '__code__', None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()


def find_part(name: Any, scope: str) -> type | None:
    """Return the class of a name, of the list or of the user; or None. Names are never used for imports."""
    if not isinstance(name, str):
        return None
    prefix, _, rest = name.rpartition('.')
    for place in (scope, 'mmengine') if prefix in ('', scope) else (prefix,):
        if place not in TYPES:
            return None
        if place in SCOPES:
            import_library(place)
        if place == 'vt':
            import_every_part(scope)
        found = (ROOT.children.get(place) or ROOT).module_dict.get(rest)
        if inspect.isclass(found):
            is_own = _package(found) not in ('vt', *LIBRARIES)
            return found if is_own or rest in TYPES[place].split() else None
    return None
