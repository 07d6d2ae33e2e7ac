"""Where in a config an error happened, read from the frames of its traceback."""

import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseDataPreprocessor
from mmengine.optim import DefaultOptimWrapperConstructor, OptimWrapper
from mmengine.optim.scheduler import _ParamScheduler
from mmengine.registry import build_functions
from mmengine.runner import BaseLoop, LogProcessor, Runner
from mmengine.visualization import Visualizer
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from .signatures import accepted_arguments

T = TypeVar('T')
BUILDERS = {getattr(build_functions, name).__code__ for name in dir(build_functions) if name.startswith('build_')}
RUNNER_KEYS = (*accepted_arguments(Runner)[0], 'speed', 'tta_model')
# Where the part of a class stands in a config, where its type need not.
USUAL_PLACES = {
    BaseDataPreprocessor: ('data_preprocessor', 'model.data_preprocessor'),
    BaseLoop: ('train_cfg',),
    BaseMetric: ('val_evaluator', 'test_evaluator'),
    Hook: ('default_hooks', 'custom_hooks'),
    LogProcessor: ('log_processor',),
    DefaultOptimWrapperConstructor: ('optim_wrapper.paramwise_cfg', 'optim_wrapper'),
    nn.Module: ('model',),
    OptimWrapper: ('optim_wrapper',),
    Optimizer: ('optim_wrapper.optimizer',),
    Visualizer: ('visualizer',),
    _ParamScheduler: ('param_scheduler',),
    DataLoader: ('train_dataloader', 'val_dataloader', 'test_dataloader'),
}
# What a runner builds in a method of its own, by a type or without one.
BUILT_BY_RUNNER = dict(
    build_train_loop='train_cfg',
    build_val_loop='val_cfg',
    build_test_loop='test_cfg',
    build_log_processor='log_processor',
    build_visualizer='visualizer',
    build_optim_wrapper='optim_wrapper',
    build_param_scheduler='param_scheduler',
    register_default_hooks='default_hooks',
    register_custom_hooks='custom_hooks',
    set_randomness='randomness',
    scale_lr='auto_scale_lr',
)


class Place(NamedTuple):
    """A part of a config.

    Attributes:
        path: its keys, joined by dots.
        part: its settings.
    """

    path: str
    part: Any


def find_place(error: BaseException) -> Place | None:
    """The innermost part of the config that was being built, or was at work, when an error was raised.

    A part that is handed from one library to the next is copied and completed on its way, so it is found again by its
    type and by how many of its settings agree.
    """
    cfg = read_config_of(error)
    if cfg is None:
        return None
    found = Place('', cfg)
    for frame in _frames(error):
        found = _step(frame, found, cfg) or found
    return found if found.path else None


def find_local(error: BaseException, kind: type[T]) -> T | None:
    """The outermost local variable of a class in the frames of an error's traceback."""
    values = (value for frame in _frames(error) for value in frame.f_locals.values())
    return next((value for value in values if isinstance(value, kind)), None)


def find_innermost(error: BaseException, kind: type[T]) -> T | None:
    """The innermost object of a class whose method was running."""
    owners = [frame.f_locals.get('self') for frame in _frames(error)]
    return next((owner for owner in reversed(owners) if isinstance(owner, kind)), None)


def builder_of(error: BaseException) -> Any:
    """The class or function whose call by the innermost builder failed."""
    builders = [frame for frame in _frames(error) if frame.f_code in BUILDERS and 'obj_cls' in frame.f_locals]
    return builders[-1].f_locals['obj_cls'] if builders else None


def was_raised_here(error: BaseException) -> bool:
    """Whether our own code raised it, so that its message was written for the user of a config."""
    frames = list(_frames(error))
    return bool(frames) and str(frames[-1].f_globals.get('__name__')).startswith('vt.')


def read_config_of(error: BaseException) -> dict | None:
    """The config of the run that failed."""
    cfg = getattr(find_local(error, Runner), 'cfg', None) or find_local(error, Config)
    if not isinstance(cfg, Config):
        return None
    return {key: value for key, value in cfg.to_dict().items() if key in RUNNER_KEYS}  # not a config's own variables


def _frames(error: BaseException) -> Iterator[FrameType]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        yield frame


def _step(frame: FrameType, found: Place, cfg: dict) -> Place | None:
    """The part that a frame builds or belongs to, preferably inside the part that was found before it."""
    owner = frame.f_locals.get('self')
    if frame.f_code in BUILDERS:
        built, kind = frame.f_locals.get('cfg'), frame.f_locals.get('obj_cls')
        place = _match(built, found, cfg) if isinstance(built, dict) else None
        return place or (_usual_place(kind, found, cfg) if isinstance(kind, type) else None)
    if isinstance(owner, Runner):
        return _at((BUILT_BY_RUNNER.get(frame.f_code.co_name),), cfg)
    if owner is None:
        return None
    return _match(dict(type=type(owner).__name__), found, cfg) or _usual_place(type(owner), found, cfg)


def _usual_place(kind: type, found: Place, cfg: dict) -> Place | None:
    paths = next((paths for base, paths in USUAL_PLACES.items() if issubclass(kind, base)), ())
    return None if not paths or found.path.startswith(paths) else _at(paths, cfg)


def _at(paths: tuple[str | None, ...], cfg: dict) -> Place | None:
    """The part at the first path that the config has."""
    parts = dict(_parts('', cfg))
    return next((Place(path, parts[path]) for path in paths if path in parts), None)


def _match(built: dict, found: Place, cfg: dict) -> Place | None:
    """The part with the type of ``built``, and of these the first that agrees with it in most settings."""
    kind = _short(built.get('type'))
    for inside in (found, Place('', cfg)):
        parts = (place for place in _parts(*inside) if isinstance(place.part, dict))
        alike = [place for place in parts if kind and kind == _short(place.part.get('type'))]
        if alike:
            return max(alike, key=lambda place: _agreement(place.part, built))
    return None


def _short(kind: Any) -> str | None:
    return kind.split('.')[-1] if isinstance(kind, str) else getattr(kind, '__name__', None)


def _agreement(part: dict, built: dict) -> int:
    return sum(1 if key in built and str(built[key]) == str(value) else -1 for key, value in part.items())


def _parts(path: str, part: Any) -> Iterator[Place]:
    """A part and all below it, each once."""
    yield Place(path, part)
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, (list, tuple)) else ()
    for key, value in items:
        if isinstance(value, (dict, list, tuple)):
            yield from _parts(f'{path}.{key}' if path else str(key), value)
