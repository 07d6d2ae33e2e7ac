"""Models saved in folders: weights as safetensors, the config as JSON. Reading a folder runs no code.

``config.json`` contains the model and the test pipeline, as registered parts with plain arguments; the header of the
weights contains class names, colours and versions.

A folder is untrusted: a type must be one that :func:`vt.serialization.saved_types.is_listed` allows, a string one of
those that its argument takes. Only then types are looked up by mmengine, and arguments compared with their signatures.
"""

import json
from os import PathLike
from pathlib import Path
from typing import Any

import mmengine
import torch
from mmengine.config import Config
from mmengine.model import BaseModel

import vt
from vt.checkpoints.publish import as_safetensors
from vt.checkpoints.weights import unwrap
from vt.engine.config.check_settings import check_part
from vt.engine.config.parts import preparation_of
from vt.engine.config.pretrained import WEIGHTS
from vt.engine.config.steps import DISTRIBUTION
from vt.errors import UserError
from vt.files import file_in, parse_errors, read_json, write_atomically
from vt.hints import as_typed
from vt.inference.inputs import Samples
from vt.untrusted_text import printable

from .saved_types import LEFT_OUT, NAME_ARGS, SCOPES, STRINGS, WORD, is_listed

CONFIG = 'config.json'
FORMAT = 4
KEYS = ('library', 'format', 'scope', 'model', 'pipeline')
# Classifiers that are saved as an ImageClassifier, with equal predictions, and the parts that it has.
DISTILLATION_TYPES, PARTS = (
    ('vt.DistilledClassifier', 'vt.TokenLabelClassifier'),
    ('backbone', 'neck', 'head', 'data_preprocessor'),
)
TUPLE = 'tuple'  # JSON has no tuples, and the libraries distinguish them from lists
LARGEST = 2**17  # number that a saved model may contain
ADVICE = 'give a folder that was written by vt.apis.save_model'


def save_model(model: BaseModel, folder: str | PathLike, cfg: Config | None = None) -> None:
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
    header = {key: json.dumps([*meta[key]]) for key in ('classes', 'palette') if meta.get(key)}
    header |= dict(vt=vt.__version__, torch=torch.__version__, mmengine=mmengine.__version__)
    text = json.dumps(_as_json(dict(library=DISTRIBUTION, format=FORMAT, **describe(cfg))), indent=2, allow_nan=False)
    write_atomically(Path(folder, WEIGHTS), as_safetensors(model.state_dict(), header))
    write_atomically(Path(folder, CONFIG), f'{text}\n')


def describe(cfg: Config) -> dict[str, Any]:
    """Return the parts of a config that are needed to build the model and predict.

    Returns:
        ``scope``, ``model`` and ``pipeline``, the test pipeline without labels; ``shape`` of the inputs if the test set
        is in memory.

    Raises:
        UserError: a type or value that a folder cannot contain.
    """
    scope = cfg.get('default_scope') or 'mmpretrain'
    model = cfg.model.to_dict()
    if 'data_preprocessor' in cfg:
        model.setdefault('data_preprocessor', cfg.data_preprocessor.to_dict())  # as mmengine's runner does
    steps = _without_training([*preparation_of(cfg).steps])
    described = dict(scope=scope, model=_without_training(model), pipeline=steps)
    if not any('Load' in str(step['type']) for step in steps):
        described['shape'] = [*Samples(cfg).input_shape]
    check_parts(described['model'], 'model', scope)
    check_parts(steps, 'pipeline', scope, 'transform')
    return described


def _without_training(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_without_training, value))
    if not isinstance(value, dict):
        return value
    kept = {key: _without_training(item) for key, item in value.items() if key not in LEFT_OUT}
    if value.get('type') not in DISTILLATION_TYPES:
        return kept
    return dict({key: item for key, item in kept.items() if key in PARTS}, type='ImageClassifier')


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
    """Return the config of a saved model after checks; ``saved_in`` is the absolute path of its weights; no code runs.

    Raises:
        UserError: a file is missing, damaged, of another kind, or contains other types or values than those of
            :mod:`vt.serialization.saved_types`.
    """
    path, weights = file_in(folder, CONFIG), file_in(folder, WEIGHTS)
    content = read_json(path, ADVICE, keys=KEYS)
    with parse_errors(path, ADVICE):
        content = {key: _from_json(value) for key, value in content.items()}
        scope, shape = content['scope'], content.get('shape')
        if unknown := [key for key in content if key not in (*KEYS, 'shape')]:
            raise UserError(f'{printable(unknown[0], 80)} is not a key of the config of a saved model: {ADVICE}')
        if content['library'] != DISTRIBUTION or content['format'] != FORMAT:
            raise UserError(f'it is not a model of {DISTRIBUTION} in format {FORMAT}: {ADVICE}')
        if scope not in SCOPES:
            raise UserError(f'scope={printable(repr(scope), 80)} must be one of {", ".join(SCOPES)}')
        if 'type' not in content['model']:
            raise UserError('model has no type')
        if shape is not None and not (len(shape) in (3, 4) and all(type(side) is int and side > 0 for side in shape)):
            raise UserError(f'shape={printable(repr(shape), 80)} is not a valid input shape')
        check_parts(content['model'], 'model', scope)
        check_parts(content['pipeline'], 'pipeline', scope, 'transform')
        check_part(content['model'], 'model', scope)
        check_part(content['pipeline'], 'pipeline', scope)
        dataset = dict(type='BaseDataset' if scope == 'mmpretrain' else 'BaseSegDataset')  # without samples
        dataset['pipeline'] = content['pipeline']
        cfg = Config(dict(default_scope=scope, model=content['model'], test_dataloader=dict(dataset=dataset)))
        cfg.update(dict(saved_in=str(weights.absolute()), **dict(input_shape=shape) if shape else {}))
        Samples(cfg)
    return cfg


def check_parts(value: Any, where: str, scope: str, kind: str = 'model', argument: str = '') -> None:
    """Raise a UserError with the key of a value that a folder may not contain, before mmengine looks up any name.

    Args:
        value: the value of an argument, or a dict or list of them.
        where: its path in the config.
        scope: library of types without a prefix.
        kind: of types, see :func:`vt.serialization.saved_types.is_listed`.
        argument: name of the argument.
    """
    if isinstance(value, dict):
        scope = value.get('_scope_', scope)  # mmengine enters it where a config inherits one of another package
        _check_type(value, where, scope, kind)
        for key in [key for key in value if key not in ('type', '_scope_')]:
            if not (isinstance(key, str) and WORD.fullmatch(key)) or key in LEFT_OUT:
                raise UserError(f'{where} has the key {printable(repr(key), 80)}, which is not allowed: remove it')
            check_parts(value[key], f'{where}.{key}', scope, kind, key)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            check_parts(item, f'{where}.{index}', scope, kind, argument)
    elif isinstance(value, str):
        takes_any = argument in NAME_ARGS and WORD.fullmatch(value)
        if not (takes_any or value in STRINGS.get(argument, '').split()):
            raise UserError(f'{where}={printable(repr(value), 80)} is not allowed in a saved model')
    elif not (value is None or (isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST)):
        raise UserError(f'{where}={printable(repr(value), 80)} is not a string, or a number up to {LARGEST:,}')


def _check_type(value: dict, where: str, scope: str, kind: str) -> None:
    """Raise a UserError for a scope or type that a folder may not contain."""
    if scope not in SCOPES:
        raise UserError(f'{where}._scope_={printable(repr(scope), 80)} must be one of {", ".join(SCOPES)}')
    if 'type' in value and not is_listed(value['type'], scope, kind):
        reason = f'{where}.type={printable(repr(value["type"]), 80)} is not allowed in a saved model'
        raise UserError(f'{reason}; share such models as a checkpoint ({as_typed("vt publish")}) and a config')
