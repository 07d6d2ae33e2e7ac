"""Check a config before anything is built from it: types exist, arguments are known, values have their types.

Errors name the path of the setting. Values that raise an error where they are used are found by the dry run.
"""

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from fnmatch import fnmatch
from importlib import import_module
from typing import Any

from mmengine.config import Config
from mmengine.model import PretrainedInit as PlainPretrainedInit
from mmengine.optim import OptimWrapper
from mmengine.registry import Registry, root
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, LogProcessor, Runner, TestLoop, ValLoop
from mmengine.utils import get_object_from_string
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.utils.data import DataLoader

from vt._libraries import importing
from vt.checkpoints.loading import PretrainedInit
from vt.engine.config.default_hooks import HOOK_NAMES
from vt.engine.run.sharding import ShardSettings
from vt.engine.run.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.registry import dicts_in, import_every_part

from .unread_variables import check_variables

# Keys of a config that are read, besides the arguments of mmengine's runner.
OTHER_KEYS = (
    *('activation_checkpointing', 'compile', 'config_name', 'custom_imports', 'data_root', 'efficient_conv_bn_eval'),
    *('find_unused_parameters', 'fold', 'fsdp', 'image_size', 'model_wrapper_cfg', 'num_folds', 'runner_type'),
    *('speed', 'val_fraction'),
    *('imbalance', 'sync_bn'),
    *('tta_model', 'tta_pipeline'),
)


# Settings that mmengine reads key by key.
def _scaling(enable: bool, base_batch_size: int) -> None: ...
def _environment(cudnn_benchmark: bool, mp_cfg: dict, dist_cfg: dict, resource_limit: int) -> None: ...


# Sections without a type, and what takes their keys.
SECTIONS = {
    '*_dataloader': [DataLoader],
    'auto_scale_lr': [_scaling],
    'env_cfg': [_environment],
    'fsdp': [ShardSettings],
    'log_processor': [LogProcessor],
    'optim_wrapper': [OptimWrapper],
    'optim_wrapper.clip_grad': [clip_grad_norm_, clip_grad_value_],
    'randomness': [Runner.set_randomness],
    'speed': [SpeedSettings],
    'test_cfg': [TestLoop],
    'train_cfg': [EpochBasedTrainLoop, IterBasedTrainLoop],
    'val_cfg': [ValLoop],
}
# Keys that builders remove before they call a type.
COMPANION_ARGS = {
    '*_dataloader': ('dataset', 'disable_subprocess_warning', 'num_batch_per_epoch', 'worker_init_fn'),
    '*_hooks.*': ('priority',),
    '*.policies.*': ('magnitude_key',),
    '*norm_cfg': ('requires_grad',),
    'optim_wrapper': ('constructor', 'dtype', 'loss_scale', 'optimizer', 'paramwise_cfg'),  # dtype, loss_scale: --amp
    'param_scheduler*': ('convert_to_iter_based',),
    'train_cfg': ('by_epoch', 'max_epochs', 'max_iters'),
}
# Arguments in which ``type`` does not name a registered class.
NON_REGISTRY_ARGS = {
    'Albu': 'transforms',
    'Albumentations': 'transforms',
    'LoRAModel': 'targets',
    'vt.LoRAModel': 'targets',
}
NO_PARTS = ('runner', 'runner constructor', 'inferencer')  # registries that configs do not use
imported_scopes: set[Any] = set()  # whose parts have been imported, without messages
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
SIMPLE = (bool, int, float, str, type(None))
UNCHECKED_ARGS = ('loss_scale',)  # AmpOptimWrapper also takes a number or a dict


def check_config(cfg: Config, options: Iterable[str] = ()) -> None:
    """Check all parts of a config that a run may build, then its variables.

    Args:
        cfg: the config, with options applied.
        options: keys of ``--cfg-options``, whose first parts must be settings.

    Raises:
        UserError: a type does not exist, an argument is unknown, a value is invalid, or a variable has no effect; the
            message starts with the path of the setting.
    """
    if not isinstance(cfg.get('model'), dict):
        raise UserError('the config has no model: set model=dict(type=...)')
    settings, options = {*accepted_arguments(Runner)[0], *OTHER_KEYS}, [*options]
    content, scope = cfg.to_dict(), cfg.get('default_scope') or 'mmpretrain'
    check_values(Runner, content, '')
    for key, part in content.items():
        if key in settings and key not in ('custom_imports', 'tta_pipeline'):
            check_part(part, key, scope)
            if key.endswith('_dataloader') and part and 'dataset' not in part:
                raise UserError(f'{key} has no dataset: set {key}.dataset=dict(type=...)')
    _check_length(content.get('train_cfg') or {})
    for name in {*(content.get('default_hooks') or {})} - {*HOOK_NAMES}:
        if near := difflib.get_close_matches(name, HOOK_NAMES, n=1, cutoff=0.8):
            raise UserError(f'default_hooks.{name} would add a hook beside {near[0]}: rename it to {near[0]}')
    if not cfg.filename:
        return
    # Keys that other settings contain are not settings themselves.
    roots = [part.get('data_root', '') for part in dicts_in([content[key] for key in content if 'loader' in key])]
    is_replaced = 'data_root' not in options and any(option.endswith('.data_root') for option in options)
    if not (is_replaced or any(root in (None, content.get('data_root')) for root in roots)):
        settings.remove('data_root')
    if cfg.model.get('data_preprocessor'):
        settings.remove('data_preprocessor')
    check_variables(cfg.filename, settings, options)


def _check_length(loop: dict) -> None:
    """Refuse a training without a step or an interval of validations."""
    for name in ('max_epochs', 'max_iters', 'val_interval'):
        if loop.get(name, 1) < 1:
            raise UserError(f'train_cfg.{name}={loop[name]} must be at least 1')


def check_part(part: Any, path: str, scope: str, usual: Any = None) -> None:
    """Check that types in a value of a config exist and take their arguments.

    Args:
        part: the config of a part, or any value with such configs inside.
        path: its path in the config, for messages.
        scope: package of the registries, such as ``'mmpretrain'``.
        usual: type of a dict without ``type``.

    Raises:
        UserError: as from :func:`check_config`.
    """
    takers = [built for pattern, section in SECTIONS.items() if fnmatch(path, pattern) for built in section]
    if not isinstance(part, dict):
        if part is not None and takers:
            raise UserError(f'{path}={shortened(part)} must be a dict of settings, or None')
        for index, value in enumerate(part if isinstance(part, (list, tuple)) else ()):
            check_part(value, f'{path}.{index}', scope)
        return
    scope = part.get('_scope_', scope)  # its children are built in it, too
    kind = part.get('type', usual)
    if callable(kind):
        takers = [kind]
    elif path == 'optim_wrapper.clip_grad':
        takers = [clip_grad_value_ if kind == 'value' else clip_grad_norm_]
    elif kind is not None or 'type' in part:
        takers = find_types(kind, scope, path)
    arguments = accepted_arguments(takers[0])[0] if takers else {}
    for key, value in part.items():
        if NON_REGISTRY_ARGS.get(str(part.get('type'))) != key:
            default = arguments[key].default if key in arguments else None
            check_part(value, f'{path}.{key}', scope, default.get('type') if isinstance(default, dict) else None)
    _check_arguments(takers, part, path, bool(kind))


def _check_arguments(takers: list[Any], part: dict, path: str, is_named: bool) -> None:
    """Raise a UserError for an argument that no type takes, or a value that those that take all of them do not."""
    beside = [key for pattern, keys in COMPANION_ARGS.items() if fnmatch(path, pattern) for key in keys]
    unknown = {built: _unknown(built, part, beside) for built in takers}
    if unknown and all(unknown.values()):
        key = unknown[takers[0]][0]
        owner, arguments = takers[0].__name__ if is_named else 'it', accepted_arguments(takers[0])[0]
        raise UserError(f"{path}: {owner} has no argument '{key}'; {_near(key, sorted({*arguments, *beside}))}")
    for built in takers:
        if not unknown[built]:
            check_values(built, part, path)


def find_types(name: Any, scope: Any, path: str) -> list[Any]:
    """Return what the registries of a scope contain under a name; only a full path such as ``a.b.Class`` is imported.

    Args:
        name: name of a type, with or without its scope.
        scope: package of the registries, such as ``'mmpretrain'``.
        path: path in the config, for messages.

    Raises:
        UserError: the registries do not contain the name.
    """
    if not isinstance(name, str) or not name:
        raise UserError(f'{path}.type={shortened(name)} must be the name of a type')
    prefix, key = Registry.split_scope_key(name)
    found = _look_up(key, prefix or scope)
    if not found and prefix == 'vt':
        import_every_part('mmseg')
        found = _look_up(key, prefix)
    if not found and prefix:
        with importing():
            found = [each for each in [get_object_from_string(name)] if each is not None]
    if not found:
        parts = registries(scope)
        if not prefix and all(registry.scope != scope for registry in parts):
            raise UserError(f'{path}: default_scope={shortened(scope)} is not a package with registries; correct it')
        others = [other for registry in parts for other in registry.children.values() if other.scope != scope]
        known = {part for registry in parts for part in registry.module_dict}
        known |= {f'{other.scope}.{part}' for other in others for part in other.module_dict}
        advice = f'correct it, its prefix or default_scope={shortened(scope)}, or add its package to custom_imports'
        raise UserError(f"{path}: there is no type '{name}'; {_near(name, known, advice)}")
    return found


def _look_up(key: str, scope: Any) -> list[Any]:
    """Return what the registries of a scope contain under a name. ``Registry.get`` would import it."""
    built = [registry.module_dict[key] for registry in registries(scope) if key in registry.module_dict]
    replaced = [PretrainedInit if each is PlainPretrainedInit else each for each in built]  # as ``weights_only`` does
    return [*dict.fromkeys(replaced)]


def registries(scope: Any) -> list[Registry]:
    """Return the registries of a scope, then those of mmengine, which contain what all scopes share."""
    shared = [part for part in vars(root).values() if isinstance(part, Registry)]
    own: list[Any] = []
    with importing() if scope not in imported_scopes else nullcontext():
        imported_scopes.add(scope)
        if isinstance(scope, str) and scope.isidentifier():
            with suppress(ImportError):  # a scope without a package, which a config registers
                own = [*vars(import_module(f'{scope}.registry')).values()]
            own += [part.children[scope] for part in shared if scope in part.children]
        found = [part for part in own if isinstance(part, Registry)] + shared
        found = [part for part in dict.fromkeys(found) if part.name not in NO_PARTS]
        for part in found:
            part.import_from_location()
    return found


def _unknown(built: Any, part: dict, beside: list[str]) -> list[str]:
    names, takes_any = accepted_arguments(built)
    return [] if takes_any else [key for key in part if key not in {*names, *beside, 'type', '_scope_'}]


def shortened(value: Any, most: int = 80) -> str:
    """Return the text of a value, or its beginning, of at most so many characters."""
    text = repr(value)
    return text if len(text) <= most else f'{text[: most - 2]} …'


def check_values(built: Any, part: dict, path: str) -> None:
    """Check arguments of classes of VT and mmengine that are annotated as numbers, strings or booleans."""
    if not getattr(built, '__module__', '').startswith(('vt.', 'mmengine.')):
        return
    for name, parameter in accepted_arguments(built)[0].items():
        kind = parameter.annotation
        kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
        value, where = part.get(name), f'{path}.{name}'.strip('.')
        if value is not None and typing.get_origin(kind) is typing.Literal and value not in typing.get_args(kind):
            raise UserError(f'{where}={shortened(value)} must be one of {", ".join(typing.get_args(kind))}')
        if value is not None and name not in UNCHECKED_ARGS and {*kinds} <= {*SIMPLE}:
            allowed = (*kinds, int) if float in kinds else kinds
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
                words = ' or '.join('None' if kind is type(None) else kind.__name__ for kind in kinds)
                raise UserError(f'{where}={shortened(value)} must be of type {words}')


def _near(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Suggest known names that are similar to a misspelt one; without any, return ``otherwise`` or all known names."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f'did you mean {" or ".join(near)}?'
    return otherwise or f'valid names are {", ".join(known)}'


@functools.cache
def accepted_arguments(part: Any) -> tuple[dict[str, inspect.Parameter], bool]:
    """Return the named arguments of a class or function, and whether it accepts arguments of any other name.

    A class with ``**kwargs`` also has the arguments of its base; one with ``*args``, too, unless it is a mixin, accepts
    any.
    """
    names: dict[str, inspect.Parameter] = {}
    for owner in inspect.getmro(part) if inspect.isclass(part) else (part,):
        function = vars(owner).get('__init__') if inspect.isclass(part) else part
        if function is None:
            continue
        try:
            parameters = [each for each in inspect.signature(function).parameters.values() if each.name != 'self']
        except (TypeError, ValueError):  # a builtin without a signature
            break
        kinds = {parameter.kind for parameter in parameters}
        names = {parameter.name: parameter for parameter in parameters if parameter.kind in NAMED} | names
        hands_on = inspect.Parameter.VAR_POSITIONAL in kinds and not owner.__name__.endswith('Mixin')
        if hands_on:
            break
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return names, False
    return names, True
