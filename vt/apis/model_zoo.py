"""Models by name: the name of a model is the name of its config."""

import functools
from copy import deepcopy
from difflib import get_close_matches
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.model import BaseModel
from torch import nn

from vt._libraries import importing
from vt.checkpoints.run_folders import find_run, find_run_config
from vt.checkpoints.weights import load_weights
from vt.engine.config.check_settings import check_part
from vt.engine.config.compose import short_models
from vt.engine.config.options import apply_options
from vt.engine.config.pretrained import LIBRARIES, PUBLISHED, TIMM, named_weights
from vt.engine.config.steps import Run, RunOptions, Step, apply_classes, apply_start, read_config
from vt.engine.hooks.num_classes import classes_of
from vt.engine.reporting import error_context
from vt.engine.run.launch import build_model, default_device, draw_weights, require_device
from vt.engine.run.speed_settings import SpeedSettings
from vt.errors import UserError
from vt.files import ROOT
from vt.models.optimize import optimize_for
from vt.serialization.model_folder import read_folder

INDEX = ROOT / 'model-index.yml'
Source = str | PathLike | Config


@functools.cache
def _configs() -> dict[str, Path]:
    """Return the paths of all configs that train a model, by name."""
    paths = (ROOT / 'configs').rglob('*.py')
    return short_models() | {path.stem: path for path in sorted(paths) if '_base_' not in path.parts}


def list_models(pattern: str | None = None, ablations: bool = False) -> list[str]:
    """Return the sorted names of models.

    Args:
        pattern: start of the names, with wildcards, such as ``'vt-resnet*in1k'``; None for all.
        ablations: whether to include configs in folders ``ablations``.
    """
    hidden = {'_base_'} if ablations else {'_base_', 'ablations'}
    names = [name for name, path in _configs().items() if not hidden & {*path.relative_to(ROOT).parts}]
    return sorted(name for name in names if pattern is None or fnmatchcase(name.lower(), f'{pattern.lower()}*'))


def find_config(name: str) -> Path:
    """Return the path of a model's config by name, in upper or lower case.

    Raises:
        UserError: there is no such model; the message lists similar names, also for those of timm, torchvision and
            Hugging Face.
    """
    by_name = {known.lower(): path for known, path in _configs().items()}
    if name.lower() in by_name:
        return by_name[name.lower()]
    near = _similar(name)
    advice = f'did you mean {" or ".join(near)}? ' if near else ''
    if libraries := [each for each, own in zip(LIBRARIES, PUBLISHED.get(near[0], ())) if own] if near else []:
        advice += f'{" or ".join(f"weights={each}" for each in libraries)} loads those published for {near[0]}; '
    what = 'model' if near or '/' not in name else 'folder, config or model'
    raise UserError(f'there is no {what} {name!r}: {advice}`vt models` lists all')


def find_source(source: str) -> str:
    """Return the path of the config of a name or of a run's folder; others stay: paths, saved models, ``timm:NAME``.

    Raises:
        UserError: as :func:`find_config`.
    """
    is_name = source.lower() in map(str.lower, _configs())  # ./NAME is a folder
    if not is_name and Path(source).is_dir() and (config := find_run_config(source)):  # of a run
        return str(config)
    is_path = source.startswith(TIMM) or source.endswith('.py') or Path(source).exists()
    return source if is_path and not is_name else str(find_config(source))


def name_of(source: str) -> str:
    """Return the name of what :func:`find_source` gives, for titles and files: ``timm-NAME`` for one of timm."""
    return f'timm-{source.removeprefix(TIMM)}' if source.startswith(TIMM) else Path(source).stem


def _similar(name: str) -> list[str]:
    """Return the names of similar models, by their own names and by those of timm and torchvision."""
    names = list_models(ablations=True)
    own = {each.partition('_')[0]: each for each in reversed(names)} | {_plain(each): each for each in names}
    own |= {_plain(public): each for each, names in PUBLISHED.items() for public in names if public}
    own |= {each: each for each in short_models()}  # before the configs of the same models
    return [*dict.fromkeys(own[each] for each in get_close_matches(_plain(name), own))]


def _plain(name: str) -> str:
    """Return a name of any library without owner, tag and ``_Weights``, in lower case with one separator."""
    architecture = name.lower().rpartition('/')[2].partition('.')[0]
    return architecture.removesuffix('_weights').replace('_', '-').replace(' ', '-')


def model_steps() -> dict[str, Step]:
    """Return the steps from the config of a model to its building, by their names."""
    return {
        'arguments': lambda run: run.cfg.merge_from_dict(run.request.options),
        'weights': apply_start,
        'check of the arguments': check_arguments,
        'classes': apply_classes,
    }


def check_arguments(run: Run) -> None:
    """Raise a UserError if ``model`` or ``speed`` has an unknown type or argument, or weights are given twice."""
    check_part(run.cfg.model.to_dict(), 'model', run.scope)
    check_part(dict(run.cfg.get('speed') or {}), 'speed', run.scope)
    named = named_weights(run.request.options)
    if named and run.start:
        raise UserError(f'init_cfg ({named[0]}) and pretrained ({run.start}) both set all weights: give one of them')


def get_model(
    name_or_config: Source,
    pretrained: str | PathLike | bool | None = None,
    device: str | torch.device | None = None,
    **overrides: Any,
) -> BaseModel:
    """Build a model in evaluation mode, with ``model.cfg``, and the class names in ``model.dataset_meta``.

    Its implementations are the fastest for its device, see :func:`vt.models.optimize_for`; ``channels_last`` and
    ``token_products`` of the config's ``speed`` apply.

    Without a checkpoint the weights are initialised as in the config, but files and addresses that it names as initial
    weights are not read; ``model.init_weights()`` does so. Those that ``overrides`` name,
    ``init_cfg=dict(type='Pretrained', ...)``, are loaded. Folders of :func:`vt.apis.save_model` contain their weights,
    which their configs load, too, unless ``pretrained`` is another checkpoint or False.

    Args:
        name_or_config: name of a model, path of a config (``.py``) or of a saved model's folder, or a config.
        pretrained: ``'timm'`` or ``'torchvision'`` for the library's published weights of this model, downloaded by the
            library, with its preprocessing, adapted to other ``in_channels`` of the backbone; or path or address of a
            checkpoint, which is read weights-only and must fit; or a saved model's folder; False for initial
            weights. With ``head=dict(num_classes=...)`` in ``overrides`` the checkpoint may have another number of
            classes: the head is then initialised randomly.
        device: device of the model; None for the CPU.
        **overrides: options of the model that replace those of the config, such as ``head=dict(num_classes=10)``.

    Returns:
        The model.

    Raises:
        UserError: an unknown model or option; a checkpoint that is missing or does not fit; no published weights;
            weights both in ``overrides`` and ``pretrained``; a device that does not exist.
    """
    if not isinstance(name_or_config, Config) and (run := find_run(name_or_config)):
        name_or_config, pretrained = run[0], run[1] if pretrained in (None, True) else pretrained
    cfg = resolve_config(name_or_config)
    return build(Run(cfg, RunOptions(dict(model=overrides), checkpoint=pretrained)), device)


def build(run: Run, device: str | torch.device | None = None) -> BaseModel:
    """Build the model of a run, without its data, as :func:`get_model` does."""
    device = require_device(device)
    for step in model_steps().values():
        step(run)
    cfg, loaded, overrides = run.cfg, run.checkpoint, run.request.options.get('model', {})
    has_new_head = 'num_classes' in overrides.get('head', {})
    saved = f' of {Path(cfg.saved_in).parent}' if 'saved_in' in cfg else ''
    with error_context(f'building the model{saved}', cfg.to_dict()):
        model: Any = build_model(cfg)
        if loaded is None or has_new_head:
            draw_weights(model, named_weights(overrides))
    if loaded:
        hook = (cfg.get('default_hooks') or {}).get('weights_match') or {}
        chosen = {key: hook[key] for key in ('weights', 'grid', 'may_differ') if key in hook}
        load_weights(model, loaded, whole=not has_new_head, adapts=run.published is not None, **chosen)
    model.cfg, model.dataset_meta = cfg, classes_of(model, run.dataset_meta, loaded, has_new_head)
    del run.checkpoint  # its memory is free while the run is kept
    return _optimize(model.to(device))


def resolve_model(
    model: Source | BaseModel, pretrained: str | PathLike | bool | None, device: str | torch.device | None
) -> Any:
    """Return a given network as :func:`get_model` would give it, or build it with that, on a GPU by default."""
    if isinstance(model, nn.Module):
        return _optimize(model if device is None else model.to(require_device(device)))
    return get_model(model, pretrained, default_device() if device is None else device)


def _optimize(model: nn.Module) -> Any:
    """Return a network in evaluation mode, with the implementations that ``speed`` in its config selects."""
    speed = SpeedSettings(**getattr(model, 'cfg', {}).get('speed') or {})
    return optimize_for(model.eval(), channels_last=speed.channels_last, token_products=speed.token_products)


def resolve_config(name_or_config: Source, options: dict[str, Any] | None = None) -> Config:
    """Return the config for a name, a path, a saved model's folder, or a copy of a config.

    ``options`` are as in :func:`vt.engine.config.steps.read_config`.
    """
    if isinstance(name_or_config, Config):
        cfg = deepcopy(name_or_config)
    elif Path(source := find_source(str(name_or_config))).is_dir():
        cfg = read_folder(source)
    else:
        return read_config(source, options)
    apply_options(cfg, options or {})
    return cfg


@functools.cache  # MMPretrain refuses to register a name twice
def register_models() -> None:
    """Register the names of VT's models in MMPretrain and mmengine. Importing VT does not.

    The names then work in MMPretrain's ``get_model``, ``list_models``, ``inference_model`` and inferencers, and in
    mmengine's ``_base_ = 'vt::...'``, ``hub.get_config`` and ``BaseInferencer.list_models('vt')``. MMSegmentation's
    inferencer supports only names of its own package: give it ``str(vt.apis.find_config(name))``.
    """
    with importing():
        from mmpretrain.apis import ModelHub
    MODULE2PACKAGE['vt'] = 'vt'  # name of the package: mmengine looks for the configs in its folder
    ModelHub.register_model_index(INDEX, config_prefix=ROOT)
