"""Schema of the config of a saved model: registered parts with plain arguments.

A folder is untrusted. A type must be the name of a registered part, an argument one of this part's own, and a value a
number, a list, a part, or a string that no library evaluates, imports or opens.
"""

import inspect
import re
from typing import Any

from mmengine.registry import MODELS as ROOT

from vt._libraries import import_library
from vt.engine.checks.config import accepted_arguments
from vt.errors import UserError
from vt.registry import import_every_part
from vt.untrusted_text import printable

SCOPES = ('mmpretrain', 'mmseg')
LIBRARIES = ('mmcv', 'mmengine', 'mmpretrain', 'mmseg', 'torch')
# Modules of the libraries with parts of classifiers and segmentors; parts of other modules are refused.
MODULES = (
    *('vt.models.', 'vt.video.views', 'torch.nn.modules.', 'mmcv.cnn.bricks.', 'mmengine.model.base_model.'),
    'mmengine.utils.dl_utils.parrots_wrapper',  # SyncBN
    *(f'mmpretrain.models.{room}' for room in ('backbones.', 'necks.', 'heads.', 'losses.', 'classifiers.image')),
    *(f'mmpretrain.models.utils.{name}' for name in ('data_preprocessor', 'norm', 'attention')),
    *(f'mmseg.models.{room}' for room in ('backbones.', 'necks.', 'decode_heads.', 'losses.', 'segmentors.')),
    'mmseg.models.data_preprocessor',
)
# Not saved, because only training needs it: initial weights and augmentations.
TRAINING = ('init_cfg', 'layer_inits', 'pretrained', 'train_cfg', 'batch_augments', 'sampler')
TAUGHT = ('vt.DistilledClassifier', 'vt.TokenLabelClassifier')  # saved as an ImageClassifier, with equal predictions
# Strings that parts of the libraries take, by argument. Names of architectures are in tables of the classes.
RESIZINGS = ('nearest', 'bilinear', 'bicubic', 'area', 'lanczos')
TEXTS = dict(
    add_extra_convs=('on_input', 'on_lateral', 'on_output'),
    block=('BASIC', 'BOTTLENECK'),
    bottleneck_type=('cat', 'add'),
    fusion_types=('channel_add', 'channel_mul'),
    graph_conv_type=('mr', 'edge', 'sage', 'gin'),
    input_transform=('resize_concat', 'multiple_select'),
    interpolate_mode=RESIZINGS,
    loss_name=('loss_ce', 'loss_dice', 'loss_focal', 'loss_lovasz', 'loss_tversky', 'loss_boundary'),
    mode=('whole', 'slide', 'original', 'classy_vision', 'multi_label', *RESIZINGS),
    order=('conv', 'norm', 'act'),
    out_type=('cls_token', 'avg_featmap', 'featmap', 'raw'),
    padding_mode=('zeros', 'reflect', 'replicate', 'circular'),
    pooling_type=('att', 'avg'),
    psa_type=('bi-direction', 'collect', 'distribute'),
    reduction=('none', 'mean', 'sum'),
    stdc_type=('STDCNet1', 'STDCNet2'),
    style=('pytorch', 'caffe'),
)
TEXTS['mode'] += ('gaussian', 'embedded_gaussian', 'dot_product', 'concatenation')
BESIDE = ('type', '_scope_')  # removed by builders before they call a type
WORD = re.compile(r'(?!_)[\w+.-]{1,64}')  # a name: no path, address, expression, or key of mmengine
LARGEST, LARGEST_SIDE = 2**17, 4096  # largest number; largest side of an image after padding or cropping
MOST_STEPS = 8  # of a sliding window over its own side


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
    windows = model.get('test_cfg')
    sides, steps = (_pair(isinstance(windows, dict) and windows.get(key)) for key in ('crop_size', 'stride'))
    if any(not 0 < side <= MOST_STEPS * step for side, step in zip(sides, steps)):
        raise UserError(f'model.test_cfg has a stride of less than 1/{MOST_STEPS} of the crop_size')


def _pair(value: Any) -> tuple[float, ...]:
    """Return two numbers; 1 and 1 for anything else, which the segmentor refuses."""
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(type(side) in (int, float) for side in value)
    return tuple(value) if is_pair else (1, 1)


def _check_part(part: dict, where: str, scope: str) -> None:
    scope = part.get('_scope_', scope)
    if scope not in SCOPES:
        raise UserError(f'{where}._scope_={printable(repr(scope), 80)} is none of {", ".join(SCOPES)}')
    kind = find_part(part['type'], scope)
    if kind is None:
        shown = printable(repr(part['type']), 80)
        raise UserError(f'{where}.type={shown} is not registered: if the part is yours, import its package first')
    takes_any = not _is_library(kind) and accepted_arguments(kind)[1]
    known = {*BESIDE, 'requires_grad', *(name for owner in _owners(kind) for name in _own_arguments(owner))}
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
    elif isinstance(value, str) and not _may_say(value, *owner):
        known = ', '.join(map(repr, _texts(*owner))) or 'no string'
        raise UserError(f'{where}={printable(repr(value), 80)} is not allowed in a saved model: it takes {known}')
    elif isinstance(value, (int, float)) and not -_largest(where) <= value <= _largest(where):
        raise UserError(f'{where}={printable(value, 80)} is too large: at most {_largest(where):,} is allowed')
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        raise UserError(f'{where} is {printable(repr(value), 80)}: only strings and numbers can be saved')


def _largest(where: str) -> int:
    *parts, name = where.split('.')
    is_side = {'data_preprocessor', 'test_cfg'} & {*parts} and name not in ('num_classes', 'subdivision_num_points')
    return LARGEST_SIDE if is_side else LARGEST


def _texts(kind: type, argument: str) -> list[str]:
    """Return the strings that a part of a library takes for an argument."""
    if argument != 'arch':
        return list(TEXTS.get(argument, ()))
    tables = (getattr(kind, name) for name in dir(kind) if name.startswith('arch'))
    return [name for table in tables if isinstance(table, dict) for name in table if isinstance(name, str)]


def _may_say(text: str, kind: type, argument: str) -> bool:
    """Return whether an argument takes a string. Parts of VT and of users take any name, which they do not evaluate."""
    owners = (owner for owner in _owners(kind) if argument in _own_arguments(owner))
    is_own = not _is_library(next(owners, kind))
    return text.lower() in map(str.lower, _texts(kind, argument)) or bool(is_own and WORD.fullmatch(text))


def _is_library(kind: Any) -> bool:
    return kind.__module__.partition('.')[0] in LIBRARIES


def _owners(kind: Any) -> tuple:
    return inspect.getmro(kind) if inspect.isclass(kind) else (kind,)


def _own_arguments(owner: Any) -> tuple[str, ...]:
    code = getattr(vars(owner).get('__init__') if inspect.isclass(owner) else owner, '__code__', None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()


def find_part(name: Any, scope: str) -> Any:
    """Return the registered part of a name, or None. Names are never used for imports."""
    if not isinstance(name, str):
        return None
    prefix, _, rest = name.rpartition('.')
    prefix = prefix or scope
    if prefix in SCOPES:
        import_library(prefix)
    if prefix == 'vt':
        import_every_part(scope)
    registries = [ROOT.children[prefix]] if prefix in ROOT.children else []
    registries += [ROOT] if prefix in (scope, 'mmengine') else []
    found = next((registry.module_dict[rest] for registry in registries if rest in registry.module_dict), None)
    is_foreign = found is None or found.__module__.partition('.')[0] in (*LIBRARIES, 'vt')
    return None if is_foreign and not getattr(found, '__module__', '').startswith(MODULES) else found
