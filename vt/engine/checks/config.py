"""Check a config before anything is built from it: types exist, arguments are known, values have their types.

Errors name the path of the setting. Values that raise an error where they are used are left to the rehearsal.
"""

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mmengine.config import Config
from mmengine.model import PretrainedInit as PlainPretrainedInit
from mmengine.optim import OptimWrapper
from mmengine.registry import Registry, root
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, LogProcessor, Runner, TestLoop, ValLoop
from mmengine.utils import get_object_from_string
from torch.utils.data import DataLoader

from vt._libraries import importing
from vt.checkpoints.loading import PretrainedInit
from vt.engine.default_hooks import check_hooks
from vt.engine.processes.sharding import ShardSettings
from vt.engine.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.registry import import_every_part

from .variables import check_variables

# Keys of a config that are read, besides the arguments of mmengine's runner.
OTHER_KEYS = (
    *('activation_checkpointing', 'compile', 'custom_imports', 'data_root', 'efficient_conv_bn_eval'),
    *('find_unused_parameters', 'fold', 'fsdp', 'image_size', 'model_wrapper_cfg', 'num_folds', 'runner_type', 'speed'),
    *('imbalance', 'sync_bn'),
    *('tta_model', 'tta_pipeline'),
)


# Settings of mmengine that no class takes.
def _scaling(enable: bool, base_batch_size: int) -> None: ...
def _randomness(seed: int | None, diff_rank_seed: bool, deterministic: bool) -> None: ...
def _environment(cudnn_benchmark: bool, mp_cfg: dict, dist_cfg: dict, resource_limit: int) -> None: ...
def _clipping(
    type: str, max_norm: float, norm_type: float, clip_value: float, error_if_nonfinite: bool, foreach: bool
) -> None: ...


# The class or function that takes the keys of a dict without a type.
USUAL = {
    '*_dataloader': DataLoader,
    'auto_scale_lr': _scaling,
    'env_cfg': _environment,
    'fsdp': ShardSettings,
    'log_processor': LogProcessor,
    'optim_wrapper': OptimWrapper,
    'optim_wrapper.clip_grad': _clipping,
    'randomness': _randomness,
    'speed': SpeedSettings,
    'test_cfg': TestLoop,
    'val_cfg': ValLoop,
}
# Keys that builders remove before they call a type.
BESIDE = {
    '*_dataloader': ('dataset', 'disable_subprocess_warning', 'num_batch_per_epoch', 'worker_init_fn'),
    '*_hooks.*': ('priority',),
    '*.policies.*': ('magnitude_key',),
    '*norm_cfg': ('requires_grad',),
    'optim_wrapper': ('constructor', 'dtype', 'loss_scale', 'optimizer', 'paramwise_cfg'),  # dtype, loss_scale: --amp
    'param_scheduler*': ('convert_to_iter_based',),
    'train_cfg': ('by_epoch', 'max_epochs', 'max_iters'),
}
# Arguments in which ``type`` does not name a registered class.
FOREIGN = {'Albu': 'transforms', 'Albumentations': 'transforms', 'LoRAModel': 'targets', 'vt.LoRAModel': 'targets'}
NO_PARTS = ('runner', 'runner constructor', 'inferencer')  # registries that configs do not use
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
SIMPLE = (bool, int, float, str, type(None))
WIDER = ('loss_scale',)  # AmpOptimWrapper also takes a number or a dict


def check_config(cfg: Config, options: Iterable[str] = ()) -> None:
    """Check all parts of a config that a run may build.

    Args:
        cfg: the config, with options applied.
        options: keys of ``--cfg-options``, whose first parts must be settings, or names that the config sets.

    Raises:
        UserError: a type does not exist, an argument is unknown, or a value is invalid; the message starts with the
            path of the setting.
    """
    if not isinstance(cfg.get('model'), dict):
        raise UserError('the config has no model: set model=dict(type=...)')
    options = list(options)
    readable = [*accepted_arguments(Runner)[0], *OTHER_KEYS]
    if cfg.filename:
        check_variables(cfg.filename, readable, options, _ingredients(cfg))
    scope = cfg.get('default_scope') or 'mmpretrain'
    check_values(Runner, cfg.to_dict(), '')
    for key, part in cfg.to_dict().items():
        if key in readable and key not in ('custom_imports', 'tta_pipeline'):
            check_part(part, key, scope)
            if key.endswith('_dataloader') and part and 'dataset' not in part:
                raise UserError(f'{key} has no dataset: set {key}.dataset=dict(type=...)')
    _check_length(cfg.get('train_cfg') or {})
    check_hooks(cfg)


def _check_length(loop: dict) -> None:
    """Refuse a training without a step or without a validation."""
    for name in ('max_epochs', 'max_iters', 'val_interval'):
        if loop.get(name, 1) < 1:
            raise UserError(f'train_cfg.{name}={loop[name]} must be at least 1')
    for name in ('max_epochs', 'max_iters'):
        if name in loop and loop.get('val_begin', 0) > loop[name]:
            words = f'train_cfg.val_begin={loop["val_begin"]}, but {name}={loop[name]}: the run would not validate'
            raise UserError(f'{words}; lower val_begin')


def _ingredients(cfg: Config) -> Iterator[str]:
    """Yield top-level settings that the run does not read itself, because other settings already contain them."""
    loaders = [value for key, value in cfg.items() if key.endswith('_dataloader')]
    if all(part.get('data_root') != cfg.get('data_root') for part in _dicts(loaders)):
        yield 'data_root'
    if isinstance(cfg.model, dict) and cfg.model.get('data_preprocessor'):
        yield 'data_preprocessor'


def _dicts(value: Any) -> Iterator[dict]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from _dicts(part)


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
    if not isinstance(part, dict):
        if part is not None and any(fnmatch(path, pattern) for pattern in (*USUAL, 'train_cfg')):
            raise UserError(f'{path}={_shortened(part)} must be a dict of settings, or None')
        for index, value in enumerate(part if isinstance(part, (list, tuple)) else ()):
            check_part(value, f'{path}.{index}', scope)
        return
    candidates = list(_classes(part, path, scope, usual))
    parameters = accepted_arguments(candidates[0])[0] if candidates else {}
    for key, value in part.items():
        if FOREIGN.get(str(part.get('type'))) != key:
            default = parameters[key].default if key in parameters else None
            check_part(value, f'{path}.{key}', scope, default.get('type') if isinstance(default, dict) else None)
    beside = [key for pattern, keys in BESIDE.items() if fnmatch(path, pattern) for key in keys]
    unknown = [_unknown(built, part, beside) for built in candidates]
    if unknown and all(unknown):
        built, key = candidates[0], unknown[0][0]
        owner = built.__name__ if part.get('type', usual) else 'it'
        known = sorted({*accepted_arguments(built)[0], *beside})
        raise UserError(f"{path}: {owner} has no argument '{key}'; {_near(key, known)}")
    if candidates:
        check_values(candidates[0], part, path)


def _classes(part: dict, path: str, scope: str, usual: Any = None) -> Iterator[Any]:
    """Yield the classes and functions that a dict may be passed to."""
    kind = part.get('type', usual)
    if (kind is None and 'type' not in part) or path == 'optim_wrapper.clip_grad':  # its type is a word
        yield from (built for pattern, built in USUAL.items() if fnmatch(path, pattern))
        if path == 'train_cfg':
            yield EpochBasedTrainLoop if part.get('by_epoch', 'max_epochs' in part) else IterBasedTrainLoop
    elif callable(kind):
        yield kind
    elif not isinstance(kind, str) or not kind:
        raise UserError(f'{path}.type={_shortened(kind)} must be the name of a type')
    else:
        yield from find_types(kind, part.get('_scope_', scope), path)


def find_types(name: str, scope: str, path: str) -> list[Any]:
    """Return what the registries of a scope contain under a name; only a full path such as ``a.b.Class`` is imported.

    Args:
        name: name of a type, with or without its scope.
        scope: package of the registries, such as ``'mmpretrain'``.
        path: path in the config, for messages.

    Raises:
        UserError: the scope has no registries, or they do not contain the name.
    """
    if not (isinstance(scope, str) and _has_registries(scope)):
        words = "is not a package with registries, such as 'mmpretrain' or 'mmseg': correct default_scope"
        raise UserError(f'{path}: {_shortened(scope)} {words}')
    prefix, key = Registry.split_scope_key(name)
    if prefix is None or _has_registries(prefix):
        places = registries(prefix or scope)
    else:  # a scope that the user has registered
        parents = (*registries('mmengine'), *registries(scope))
        places = [parent.children[prefix] for parent in parents if prefix in parent.children]
    found = _look_up(key, places)
    if not found and prefix == 'vt':
        import_every_part('mmseg')
        found = _look_up(key, places)
    if not found and prefix:
        with importing():
            found = [each for each in [get_object_from_string(name)] if each is not None]
    if not found:
        known: set[str] = set()
        for registry in registries(scope):
            parent = registry.parent or registry
            known.update(registry.module_dict, parent.module_dict)
            for other in parent.children.values():
                known.update(f'{other.scope}.{part}' for part in other.module_dict if other.scope != scope)
        near = _near(name, known, 'add its package to custom_imports, or the prefix of its scope to the name')
        raise UserError(f"{path}: there is no type '{name}'; {near}")
    return found


def _look_up(key: str, places: list[Registry]) -> list[Any]:
    """Return what registries and their parents contain under a name. ``Registry.get`` would import it."""
    found: dict[Any, None] = {}
    for registry in places:
        with importing():
            registry.import_from_location()
        inherited = {} if registry.parent is None else registry.parent.module_dict
        if built := registry.module_dict.get(key, inherited.get(key)):
            found[PretrainedInit if built is PlainPretrainedInit else built] = None  # as ``weights_only`` replaces it
    return [*found]


def _unknown(built: Any, part: dict, beside: list[str]) -> list[str]:
    names, takes_any = accepted_arguments(built)
    return [] if takes_any else [key for key in part if key not in {*names, *beside, 'type', '_scope_'}]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f'{text[:78]} …'


def check_values(built: Any, part: dict, path: str) -> None:
    """Check arguments of classes of VT and mmengine that are annotated as numbers, strings or booleans."""
    if not getattr(built, '__module__', '').startswith(('vt.', 'mmengine.')):
        return
    for name, parameter in accepted_arguments(built)[0].items():
        kind = parameter.annotation
        kinds = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
        value, where = part.get(name), f'{path}.{name}'.strip('.')
        if value is not None and typing.get_origin(kind) is typing.Literal and value not in typing.get_args(kind):
            raise UserError(f'{where}={_shortened(value)} must be one of {", ".join(typing.get_args(kind))}')
        if value is not None and name not in WIDER and {*kinds} <= {*SIMPLE}:
            allowed = (*kinds, int) if float in kinds else kinds
            if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
                words = ' or '.join('None' if kind is type(None) else kind.__name__ for kind in kinds)
                raise UserError(f'{where}={_shortened(value)} must be of type {words}')


@functools.cache
def _has_registries(scope: str) -> bool:
    with importing(), suppress(ImportError, ValueError):  # not a package
        return scope.isidentifier() and find_spec(f'{scope}.registry') is not None
    return False


@functools.cache
def registries(scope: str) -> list[Registry]:
    """Return the registries of a scope, and those of mmengine that the scope does not define."""
    with importing():
        own = root if scope == 'mmengine' else import_module(f'{scope}.registry')
    every = {part.name: part for module in (root, own) for part in vars(module).values() if isinstance(part, Registry)}
    return [part for name, part in every.items() if name not in NO_PARTS]


def _near(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Suggest known names that are similar to a misspelt one; without any, return ``otherwise`` or all known names."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f'did you mean {" or ".join(near)}?'
    return otherwise or f'there are {", ".join(known)}'


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
            parameters = list(inspect.signature(function).parameters.values())[inspect.isclass(part) :]
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
