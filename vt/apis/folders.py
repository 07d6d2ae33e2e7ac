"""Models saved in folders: weights as safetensors, the config as JSON. Reading a folder runs no code.

``config.json`` contains the model (registered parts with plain arguments), the preprocessing of inputs and the class
names; ``vt/apis/schema.py`` and ``saved_inputs.py`` define its schema. ``model.safetensors`` contains every tensor.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import mmengine
import torch
from mmengine.config import Config
from mmengine.model import BaseModel

import vt
from vt.checkpoints.files import file_in, interpreting, read_json, write_atomically
from vt.checkpoints.loading import weights_only
from vt.checkpoints.publishing import as_safetensors
from vt.checkpoints.weights import unwrap
from vt.engine.config_files import DISTRIBUTION
from vt.errors import MissingFileError, UserError
from vt.inference.test_set import in_scope
from vt.untrusted_text import check_dataset_meta, printable

from .saved_inputs import check_inputs, describe_inputs, make_pipeline
from .schema import SCOPES, check_model, describe_model

CONFIG, WEIGHTS = 'config.json', 'model.safetensors'
FORMAT = 2
KEYS = ('scope', 'model', 'inputs', 'classes', 'palette')
TUPLE = 'tuple'  # JSON has no tuples, and the libraries distinguish them from lists
MAX_BYTES = 8_000_000  # of config.json; ImageNet-21k's names and colours take three million
ADVICE = 'give a folder that was written by save_pretrained'


def save_folder(model: BaseModel, folder: Path, cfg: Config | None = None) -> None:
    """Write a model to a folder; each file is written atomically.

    Settings of training are not saved: data sets, initial weights, augmentations, teachers.

    Args:
        model: a classifier or segmentor, or a distributed wrapper of one.
        folder: the folder, which is created if it does not exist.
        cfg: config of the model; None for ``model.cfg``, which :func:`vt.apis.get_model` sets.

    Raises:
        UserError: no config, a config of another library's scope, or one with types or values that a folder cannot
            contain.
        FileError: a file cannot be written.
    """
    model = unwrap(model)
    cfg = getattr(model, 'cfg', None) if cfg is None else cfg
    if cfg is None:
        raise UserError(f'{type(model).__name__} has no attribute cfg: give cfg, or build it with vt.apis.get_model')
    meta = getattr(model, 'dataset_meta', {})
    meta = {key: [*meta[key]] for key in ('classes', 'palette') if meta.get(key)}
    versions = dict(vt=vt.__version__, torch=torch.__version__, mmengine=mmengine.__version__)
    description = dict(library=DISTRIBUTION, format=FORMAT, versions=versions, **describe(cfg), **meta)
    text = json.dumps(_as_json(description), indent=2, allow_nan=False)
    classes = dict(classes=json.dumps(meta['classes'])) if 'classes' in meta else {}
    write_atomically(folder / WEIGHTS, as_safetensors(model.state_dict(), classes | dict(format='pt') | versions))
    write_atomically(folder / CONFIG, f'{text}\n')


def describe(cfg: Config) -> dict[str, Any]:
    """Return the parts of a config that are needed to build the model and predict: ``scope``, ``model``, ``inputs``."""
    scope = cfg.get('default_scope') or 'mmpretrain'
    if scope not in SCOPES:
        raise UserError(f'default_scope={scope!r}: only models of {" and ".join(SCOPES)} are saved with their config')
    model = cfg.model.to_dict()
    if 'data_preprocessor' in cfg:
        model.setdefault('data_preprocessor', cfg.data_preprocessor.to_dict())  # as mmengine's runner does
    with in_scope(cfg):
        return dict(scope=scope, model=describe_model(model, scope), inputs=describe_inputs(cfg))


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    items = [*map(_as_json, value)] if isinstance(value, (list, tuple)) else None
    return value if items is None else {TUPLE: items} if isinstance(value, tuple) else items


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {TUPLE} and isinstance(value[TUPLE], list):
            return tuple(map(_from_json, value[TUPLE]))
        return {key: _from_json(item) for key, item in value.items()}
    return [*map(_from_json, value)] if isinstance(value, list) else value


def read_folder(folder: str | PathLike) -> Config:
    """Return the config of a saved model, with ``dataset_meta``. It is checked before use, and runs no code.

    Raises:
        UserError: a file is missing, damaged, of another kind, or contains values that :mod:`vt.apis.schema` forbids.
    """
    path = require(folder, CONFIG)
    require(folder, WEIGHTS)
    content = read_json(path, ADVICE, most=MAX_BYTES)
    with interpreting(path, ADVICE):
        content = _from_json(content)
        _check(content, path)
    scope, inputs = content['scope'], content['inputs']
    meta = {key: content[key] for key in ('classes', 'palette') if key in content}
    dataset = dict(type='BaseDataset' if scope == 'mmpretrain' else 'BaseSegDataset')  # without samples
    dataset['pipeline'] = make_pipeline(inputs, scope)
    shape = dict(input_shape=inputs['shape']) if 'shape' in inputs else {}
    loader = dict(test_dataloader=dict(dataset=dataset))
    return Config(
        dict(default_scope=scope, model=content['model'], dataset_meta=meta, saved_in=str(folder), **loader, **shape)
    )


def _check(content: Any, path: Path) -> None:
    if content.get('library') != DISTRIBUTION:
        raise UserError(f'{path} is not the config of a model of {DISTRIBUTION}: {ADVICE}')
    if content.get('format') != FORMAT:
        reason = f'has format {printable(repr(content.get("format")), 40)}, this version of VT reads {FORMAT}'
        raise UserError(f'{path} {reason}: save the model again from its training config and these weights')
    unknown = [key for key in content if key not in ('library', 'format', 'versions', *KEYS)]
    missing = [key for key in KEYS[:3] if key not in content]
    if unknown or missing:
        found = f'holds {printable(repr(unknown[0]), 80)}' if unknown else f'lacks {missing[0]}'
        raise UserError(f'{path} {found}, unlike the config of a model: {ADVICE}')
    if content['scope'] not in SCOPES:
        raise UserError(f'{path}: scope={printable(repr(content["scope"]), 80)} is none of {", ".join(SCOPES)}')
    check_model(content['model'], content['scope'])
    check_inputs(content['inputs'])
    check_dataset_meta({key: content[key] for key in ('classes', 'palette') if key in content})


@contextmanager
def building(cfg: Config) -> Iterator[None]:
    """Build a model inside the block: checkpoints are read weights-only, and errors of a saved model are one line.

    Raises:
        UserError: a saved model cannot be built.
    """
    with in_scope(cfg), weights_only():
        if 'saved_in' not in cfg:
            yield
            return
        with interpreting(cfg.saved_in, ADVICE):
            yield


def require(folder: str | PathLike, name: str) -> Path:
    """Return the path of a file in a folder; a UserError if it does not exist or is a link out of the folder."""
    path = file_in(folder, name)
    if not path.is_file():
        raise MissingFileError(f'{folder} holds no {name}: {ADVICE}')
    return path
