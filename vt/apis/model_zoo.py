"""Models by the names of their configs."""

import difflib
import functools
from copy import deepcopy
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import mmengine
import torch
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.model import BaseModel
from torch import nn

from vt._libraries import import_library, importing
from vt.checkpoints.loading import weights_only
from vt.checkpoints.reading import load_checkpoint
from vt.checkpoints.weights import load_part, load_weights
from vt.engine.checks.classes import compare_with_checkpoint, heads
from vt.engine.checks.config import check_config
from vt.engine.config_files import DISTRIBUTION, ROOT, read_config, require_file
from vt.engine.config_options import apply_options
from vt.engine.launch import build_model, draw_weights, require_device
from vt.errors import UserError
from vt.inference.test_set import build_test_set
from vt.models.token_side import prepare_for_onednn
from vt.ops.token_products import use_fastest_library
from vt.untrusted_text import check_class_names

from .folders import WEIGHTS, building, read_folder, require
from .published import LIBRARIES, find_published, named_weights, prepare_as_published

INDEX = ROOT / 'model-index.yml'
Source = str | PathLike | Config


@functools.cache
def _configs() -> dict[str, Path]:
    """Every config that trains a model, by its name."""
    paths = (ROOT / 'configs').rglob('*.py')
    return {path.stem: path for path in sorted(paths) if '_base_' not in path.parts}


def list_models(pattern: str | None = None, ablations: bool = False) -> list[str]:
    """Names of models, in order.

    Args:
        pattern: how a name begins, with wildcards, such as ``'vt-resnet*in1k'``; None for all.
        ablations: whether to name those too that stand in a folder ``ablations``.
    """
    names = [name for name, path in _configs().items() if ablations or 'ablations' not in path.relative_to(ROOT).parts]
    return sorted(name for name in names if pattern is None or fnmatchcase(name.lower(), f'{pattern.lower()}*'))


def find_config(name: str) -> Path:
    """The path of a model's config, by the name that :func:`list_models` gives, in capitals or not.

    Raises:
        UserError: there is no such model; the line names those of the most similar names.
    """
    by_name = {known.lower(): path for known, path in _configs().items()}
    if name.lower() in by_name:
        return by_name[name.lower()]
    near = difflib.get_close_matches(name.lower(), by_name, n=3, cutoff=0.5)
    advice = f'did you mean {" or ".join(by_name[other].stem for other in near)}?' if near else 'none is like it'
    raise UserError(
        f'there is no model {name!r}: {advice} vt.apis.list_models(ablations=True) names all {len(by_name)}'
    )


def get_model(
    name_or_config: Source,
    pretrained: str | PathLike | bool | None = None,
    device: str | torch.device | None = None,
    **overrides: Any,
) -> BaseModel:
    """Build a model, for evaluation, with ``model.cfg`` and the data set's classes in ``model.dataset_meta``.

    Without a checkpoint its weights are arbitrary: ``model.init_weights()`` draws them as the config says, and fetches
    those that it names. Where ``overrides`` name some, ``init_cfg=dict(type='Pretrained', ...)``, that is done here. A
    folder that ``save_pretrained`` wrote has its own.

    Args:
        name_or_config: a model's name, the path of a config (``.py``) or of a saved model's folder, or a config.
        pretrained: ``'timm'``, ``'torchvision'`` or ``'huggingface'`` for the weights that the library publishes of
            this model, fetched by its own functions, with its preparation of images, adapted to a backbone of other
            ``in_channels``; or path or address of a checkpoint, which is read weights-only and must fit, or a saved
            model's folder; False for arbitrary ones.
            With ``head=dict(num_classes=...)`` among ``overrides`` the file's may be another number: the head is new.
        device: where to put the model; None leaves it on the CPU.
        **overrides: options of the model that win over the config's, such as ``head=dict(num_classes=10)``.

    Raises:
        UserError: no such model or option; a checkpoint of another model, or none; no weights are published; weights
            in ``overrides`` beside ``pretrained``, which has them all; a device that is not there.
    """
    device = require_device(device)
    cfg = resolve_config(name_or_config)
    cfg.merge_from_dict(dict(model=overrides))
    check_config(Config(dict(model=cfg.model.to_dict(), default_scope=cfg.get('default_scope', 'mmpretrain'))))
    checkpoint = resolve_weights(name_or_config, pretrained)
    begins = named_weights(overrides)
    if begins and checkpoint:
        raise UserError(f'init_cfg names {begins[0]}, and pretrained {checkpoint}, which has every tensor: give one')
    with weights_only():  # before building takes time
        loaded = {} if checkpoint is None else load_checkpoint(checkpoint, map_location='cpu')
    prepared = prepare_as_published(cfg, checkpoint)
    with building(cfg):
        model = build_model(cfg)
    if loaded and 'num_classes' in overrides.get('head', {}):
        draw_weights(model)  # of the head, if the file's has other classes
        load_part(model, loaded, name=checkpoint)
    elif loaded:
        load_weights(model, loaded, name=checkpoint, adapts=prepared is not None)
    elif begins:
        with weights_only():
            draw_weights(model)
    model.cfg, model.dataset_meta = cfg, _dataset_meta(model, cfg, checkpoint, loaded)
    if prepared and prepared.classes:  # Kinetics' data set has no names without its list
        model.dataset_meta.setdefault('classes', prepared.classes)
    return model.to(device).eval()


def init_model(
    config: Source, checkpoint: str | PathLike | None = None, device: str | torch.device | None = None
) -> BaseModel:
    """:func:`get_model` by the arguments of MMSegmentation's function of this name."""
    return get_model(config, checkpoint, device)


def resolve_model(
    model: Source | BaseModel, pretrained: str | PathLike | bool | None, device: str | torch.device | None
) -> BaseModel:
    """Return a network as it is given, for evaluation, or the one that :func:`get_model` builds.

    Its linear layers are computed by the faster library of the CPU, see :mod:`vt.ops.token_products`.
    """
    if not isinstance(model, nn.Module):
        model = get_model(model, pretrained, device)
    elif device is not None:
        model = model.to(require_device(device))
    if use_fastest_library() == 'onednn':
        prepare_for_onednn(model)
    return model.eval()


def resolve_config(name_or_config: Source, options: dict[str, Any] | None = None, quietly: bool = True) -> Config:
    """The config of a model's name, a config's path or a saved model's folder; of a config that is given a copy.

    ``options`` and ``quietly`` are as of :func:`vt.engine.config_files.read_config`.
    """
    if not isinstance(name_or_config, Config) and not is_folder(name_or_config):
        name = str(name_or_config)
        return read_config(name if name.endswith('.py') else str(find_config(name)), options, quietly)
    cfg = deepcopy(name_or_config) if isinstance(name_or_config, Config) else read_folder(name_or_config)
    import_library(cfg.get('default_scope', 'mmpretrain'))
    apply_options(cfg, options or {})
    return cfg


def is_folder(name_or_config: Source) -> bool:
    """Whether it is a folder, and no model's name; ``./`` before one that is both says so."""
    if isinstance(name_or_config, Config) or not Path(name_or_config).is_dir():
        return False
    return str(name_or_config).lower() not in map(str.lower, _configs())


def resolve_weights(name_or_config: Source, pretrained: str | PathLike | bool | None) -> str | None:
    """The checkpoint that ``pretrained`` stands for; None for none. A UserError if there are no such weights."""
    if pretrained == '':
        raise UserError('the name of the checkpoint is empty: give its path, or None for arbitrary weights')
    if pretrained in (None, True) and is_folder(name_or_config):
        return str(require(name_or_config, WEIGHTS))
    if pretrained in LIBRARIES:
        return find_published(name_or_config, str(pretrained))
    if pretrained is not True:
        is_saved = bool(pretrained) and Path(pretrained).is_dir()
        return str(require(pretrained, WEIGHTS) if is_saved else pretrained) if pretrained else None
    name = Path(name_or_config).stem if isinstance(name_or_config, (str, PathLike)) else 'a config'
    weights = _published().get(name.lower())
    if weights is None:
        raise UserError(f'no weights of {name} are published: train it, and give pretrained the path of its checkpoint')
    return weights


def require_weights(name_or_config: Source, checkpoint: str | PathLike | None) -> str | None:
    """:func:`resolve_weights` for a command line, where a path must be that of a file."""
    found = resolve_weights(name_or_config, checkpoint)
    if found is not None:
        require_file(found, 'checkpoint')
    return found


@functools.cache
def _published() -> dict[str, str]:
    """Addresses of weights by the models' names, as the metafiles have them."""
    metafiles = [mmengine.load(ROOT / path) for path in mmengine.load(INDEX)['Import']]
    models = [model for metafile in metafiles for model in metafile['Models']]
    return {model['Name'].lower(): model['Weights'] for model in models if model.get('Weights')}


def _dataset_meta(model: BaseModel, cfg: Config, checkpoint: str | None, loaded: dict) -> dict[str, Any]:
    """Names and colours of a model's classes: of its test set, whose files needn't be here, or of its weights."""
    has_test_set = cfg.get('test_dataloader') and 'saved_in' not in cfg
    meta = dict(build_test_set(cfg, lazy_init=True).metainfo) if has_test_set else {}
    number = next((own for _, own in heads(model)), None)
    if number not in (None, len(meta.get('classes') or ())):
        meta = {}  # the names are of the data set, the head has other classes
    own = (loaded.get('meta') or {}).get('dataset_meta') or {}
    if meta.get('classes') and own.get('classes'):
        difference = compare_with_checkpoint(
            meta['classes'], own['classes'], str(checkpoint), 'test_dataloader.dataset'
        )
        if difference:
            raise UserError(f'{difference}: correct classes of the config, or give its own checkpoint')
    for source, brought in ((cfg.get('saved_in'), cfg.get('dataset_meta') or {}), (checkpoint, own)):
        if brought.get('classes'):
            check_class_names(brought['classes'], f'dataset_meta.classes of {source}', number)
        meta |= brought
    return {key: meta[key] for key in ('classes', 'palette') if meta.get(key)}


@functools.cache  # MMPretrain refuses to know a name twice
def register_models() -> None:
    """Have MMPretrain's and mmengine's own functions take our models' names; importing VT changes nothing in them.

    These are MMPretrain's ``get_model``, ``list_models``, ``inference_model`` and inferencers, and of mmengine
    ``_base_ = 'vt::...'``, ``hub.get_config`` and ``BaseInferencer.list_models('vt')``. MMSegmentation's inferencer
    knows the names of its own package alone: give it ``str(vt.apis.find_config(name))``.
    """
    with importing():
        from mmpretrain.apis import ModelHub
    MODULE2PACKAGE['vt'] = DISTRIBUTION
    ModelHub.register_model_index(INDEX, config_prefix=ROOT)
