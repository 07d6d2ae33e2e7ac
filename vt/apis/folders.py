"""A model as a folder: its weights as safetensors and what it is as JSON, of which nothing is run when it is read.

``config.json`` holds the model's config with its data preprocessor, its test set with the pipeline that pictures go
through, and the names of the classes; ``model.safetensors`` every tensor.
"""

import json
import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import mmengine
import torch
from mmengine.config import Config
from mmengine.model import BaseModel

import vt
from vt._libraries import import_library
from vt.checkpoints.files import write_atomically
from vt.checkpoints.publishing import as_safetensors
from vt.checkpoints.weights import unwrap
from vt.engine.checks.config_walk import registries
from vt.engine.config_files import DISTRIBUTION
from vt.errors import FileError, MissingFileError, UserError
from vt.registry import import_every_part

CONFIG, WEIGHTS = 'config.json', 'model.safetensors'
FORMAT = 1
SCOPES = ('mmpretrain', 'mmseg')
TUPLE = 'tuple'  # JSON has none, and the libraries tell them from lists
ADVICE = 'give a folder that save_pretrained wrote'


def save_folder(model: BaseModel, folder: Path, cfg: Config | None = None) -> None:
    """Write a model to a folder; each file is written whole or not at all.

    Of absolute paths in the config, such as that of the data, the last part is kept: the others tell of this machine.

    Args:
        model: a classifier or segmentor; a wrapper of one for distribution will do.
        folder: made if it is not there.
        cfg: its config; None for ``model.cfg``, which :func:`vt.apis.get_model` leaves with it.

    Raises:
        UserError: the config is not there, is that of another library's scope, or holds what is no data.
        FileError: a file can't be written.
    """
    model = unwrap(model)
    cfg = getattr(model, 'cfg', None) if cfg is None else cfg
    if cfg is None:
        raise UserError(f'{type(model).__name__} has no config with it: give cfg, or build it by vt.apis.get_model')
    meta = getattr(model, 'dataset_meta', {})
    meta = {key: [*meta[key]] for key in ('classes', 'palette') if meta.get(key)}
    description = dict(
        library=DISTRIBUTION,
        format=FORMAT,
        versions=dict(vt=vt.__version__, torch=torch.__version__, mmengine=mmengine.__version__),
        config=_as_data(_needed(cfg), 'config'),
        dataset_meta=_as_data(meta, 'dataset_meta'),
    )
    text = json.dumps(description, indent=2)
    classes = dict(classes=json.dumps(meta['classes'])) if 'classes' in meta else {}
    texts = classes | dict(format='pt') | description['versions']
    write_atomically(folder / WEIGHTS, as_safetensors(model.state_dict(), texts))
    write_atomically(folder / CONFIG, f'{text}\n')


def _needed(cfg: Config) -> dict[str, Any]:
    """What of a config it takes to build the model and to predict."""
    scope = cfg.get('default_scope') or 'mmpretrain'
    if scope not in SCOPES:
        raise UserError(f'default_scope={scope!r}: only models of {" and ".join(SCOPES)} are saved with their config')
    model = cfg.model.to_dict()
    if 'data_preprocessor' in cfg:
        model.setdefault('data_preprocessor', cfg.data_preprocessor.to_dict())  # as mmengine's runner does
    test_set = (cfg.get('test_dataloader') or {}).get('dataset')
    loader = dict(test_dataloader=dict(dataset=test_set.to_dict())) if test_set else {}
    return dict(default_scope=scope, model=model, **loader)


def _as_data(value: Any, place: str) -> Any:
    """A value of a config as JSON has it."""
    if isinstance(value, dict):
        if any(not isinstance(key, str) for key in value) or value.keys() == {TUPLE}:
            raise UserError(f'{place} has keys that are not saved as data: {", ".join(map(repr, value))}')
        return {key: _as_data(item, f'{place}.{key}') for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_as_data(item, f'{place}.{index}') for index, item in enumerate(value)]
        return {TUPLE: items} if isinstance(value, tuple) else items
    if isinstance(value, str):
        return os.path.basename(value.rstrip('/')) if os.path.isabs(value) else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise UserError(f'{place} is {value!r}, which is no data: name it in the config by text and numbers')


def _from_data(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {TUPLE}:
            return tuple(map(_from_data, value[TUPLE]))
        return {key: _from_data(item) for key, item in value.items()}
    return [*map(_from_data, value)] if isinstance(value, list) else value


def read_folder(folder: str | PathLike) -> Config:
    """The config of a saved model, with ``dataset_meta``; every part that it names is one that a registry knows.

    Raises:
        MissingFileError: there is no such file in the folder.
        UserError: it is none of ours, is damaged, or names what is no registered part.
    """
    path = require(folder, CONFIG)
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise FileError(f'{path} could not be read ({error.strerror})') from error
    except (ValueError, RecursionError) as error:
        raise UserError(f'{path} is damaged or no JSON ({error}): {ADVICE}') from error
    if not isinstance(content, dict) or content.get('library') != DISTRIBUTION:
        raise UserError(f'{path} is the config of something else than a model of {DISTRIBUTION}: {ADVICE}')
    if content.get('format') != FORMAT:
        raise UserError(f'{path} has format {content.get("format")!r}, this VT reads {FORMAT}: take a VT that wrote it')
    try:
        config = _from_data(content['config'])
        known = dict(default_scope=config['default_scope'], model=config['model'])
        known |= {key: config[key] for key in ('test_dataloader',) if key in config}
        known['dataset_meta'] = _from_data(content['dataset_meta'])
        parts = [*_types(known['model'], 'model'), *_types(known.get('test_dataloader'), 'test_dataloader')]
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path} lacks what describes a model ({type(error).__name__}: {error}): {ADVICE}') from error
    _require_registered(parts, known['default_scope'], path)
    return Config(known)


def _types(part: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every type that a part of a config names, and its place."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ('type', '_scope_'):
                yield f'{place}.{key}', value
            yield from _types(value, f'{place}.{key}')
    elif isinstance(part, (list, tuple)):
        for index, value in enumerate(part):
            yield from _types(value, f'{place}.{index}')


def _require_registered(parts: list[tuple[str, Any]], scope: Any, path: Path) -> None:
    """A type is a registered name alone; mmengine would import, and call, whatever a dotted name leads to."""
    if scope not in SCOPES:
        raise UserError(f'{path}: default_scope={scope!r} is none of {", ".join(SCOPES)}')
    libraries = {scope, *(str(kind).partition('.')[0] for _, kind in parts)} & {*SCOPES}
    for library in libraries:
        import_library(library)
        import_every_part(library)
    known = {*_registered(libraries)}
    known |= {name.partition('.')[2] for name in known if name.startswith((f'{scope}.', 'mmengine.'))}
    for place, kind in parts:
        known_here = SCOPES if place.endswith('_scope_') else known
        if not isinstance(kind, str) or kind not in known_here:
            raise UserError(f'{path}: {place}={kind!r} is no registered part: import its package first, if it is yours')


def _registered(libraries: set[str]) -> Iterator[str]:
    """Every part that some registry of these, of mmengine, or of VT knows by now, with the prefix of its scope."""
    for root in (root for library in ('mmengine', *libraries) for root in registries(library)):
        for registry in (root, *root.children.values()):
            yield from (f'{registry.scope}.{name}' for name in registry.module_dict)


def require(folder: str | PathLike, name: str) -> Path:
    """The path of a file in a folder; a MissingFileError where it is not there."""
    path = Path(folder, name)
    if not path.is_file():
        raise MissingFileError(f'{folder} holds no {name}: {ADVICE}')
    return path
