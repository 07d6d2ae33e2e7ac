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
from mmengine.registry import DefaultScope

from vt._libraries import import_library, importing
from vt.analysis.attention.model_and_images import build_test_set
from vt.checkpoints.loading import load_checkpoint, load_weights
from vt.engine.checks.config_walk import check_config
from vt.engine.checks.num_classes import heads
from vt.engine.config_files import DISTRIBUTION, ROOT, read_config
from vt.engine.launch import build_model
from vt.errors import UserError
from vt.untrusted_text import check_class_names

from .folders import WEIGHTS, building, read_folder, require

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
        pattern: with wildcards, such as ``'vt-resnet*in1k'``; a name that begins with it will do. None for all.
        ablations: whether to name those too that stand in a folder ``ablations``.
    """
    names = [name for name, path in _configs().items() if ablations or 'ablations' not in path.relative_to(ROOT).parts]
    return sorted(name for name in names if pattern is None or fnmatchcase(name.lower(), f'{pattern.lower()}*'))


def find_config(name: str) -> Path:
    """The path of a model's config.

    Args:
        name: as :func:`list_models` gives it, in capitals or not.

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
    those that it names. A folder that ``save_pretrained`` wrote has its own.

    Args:
        name_or_config: a model's name, the path of a config (``.py``) or of a saved model's folder, or a config.
        pretrained: path or address of a checkpoint, which is read weights-only and must fit, or a saved model's folder;
            True for the published weights of a name; False for arbitrary ones.
        device: where to put the model; None leaves it on the CPU.
        **overrides: options of the model that win over the config's, such as ``head=dict(num_classes=10)``.

    Raises:
        UserError: no such model or option; a checkpoint of another model, or none; no weights are published.
    """
    cfg = model_config(name_or_config, **overrides)
    checkpoint = find_weights(name_or_config, pretrained)
    if checkpoint is not None:
        load_checkpoint(checkpoint, map_location='meta')  # before the time that building takes
    with building(cfg):
        model = build_model(cfg)
    enter_weights(model, cfg, checkpoint)
    return model.to(device or 'cpu').eval()


def init_model(
    config: Source, checkpoint: str | PathLike | None = None, device: str | torch.device | None = None
) -> BaseModel:
    """:func:`get_model` by the arguments of MMSegmentation's function of this name."""
    return get_model(config, checkpoint, device)


def model_config(name_or_config: Source, **overrides: Any) -> Config:
    """The config of a model with other options of it, checked; of a config that is given a copy."""
    if isinstance(name_or_config, Config):
        cfg = deepcopy(name_or_config)
        import_library(cfg.get('default_scope', 'mmpretrain'))
    elif str(name_or_config).endswith('.py'):
        cfg = read_config(str(name_or_config), quietly=True)
    elif is_folder(name_or_config):
        cfg = read_folder(name_or_config)
    else:
        cfg = read_config(str(find_config(str(name_or_config))), quietly=True)
    cfg.merge_from_dict(dict(model=overrides))
    check_config(Config(dict(model=cfg.model.to_dict(), default_scope=cfg.get('default_scope', 'mmpretrain'))))
    return cfg


def is_folder(name_or_config: Source) -> bool:
    """Whether it is a folder, and no model's name; ``./`` before one that is both says so."""
    if isinstance(name_or_config, Config) or not Path(name_or_config).is_dir():
        return False
    return str(name_or_config).lower() not in map(str.lower, _configs())


def find_weights(name_or_config: Source, pretrained: str | PathLike | bool | None) -> str | None:
    """The checkpoint that ``pretrained`` stands for; None for none.

    Raises:
        MissingFileError: it is a folder without weights.
        UserError: it is True, and no weights of the model are published.
    """
    if pretrained in (None, True) and is_folder(name_or_config):
        return str(require(name_or_config, WEIGHTS))
    if pretrained is not True:
        is_saved = bool(pretrained) and Path(pretrained).is_dir()
        return str(require(pretrained, WEIGHTS) if is_saved else pretrained) if pretrained else None
    name = Path(name_or_config).stem if isinstance(name_or_config, (str, PathLike)) else 'a config'
    weights = _published().get(name.lower())
    if weights is None:
        raise UserError(f'no weights of {name} are published: train it, and give pretrained the path of its checkpoint')
    return weights


@functools.cache
def _published() -> dict[str, str]:
    """Addresses of weights by the models' names, as the metafiles have them."""
    metafiles = [mmengine.load(ROOT / path) for path in mmengine.load(INDEX)['Import']]
    models = [model for metafile in metafiles for model in metafile['Models']]
    return {model['Name'].lower(): model['Weights'] for model in models if model.get('Weights')}


def in_scope(cfg: Config) -> Any:
    """A context in which types without a prefix are those of a config's library."""
    return DefaultScope.overwrite_default_scope(cfg.get('default_scope', 'mmpretrain'))


def enter_weights(model: BaseModel, cfg: Config, checkpoint: str | None) -> None:
    """Load a checkpoint, if there is one, and leave the config and the data set's classes with the model."""
    loaded = {} if checkpoint is None else load_checkpoint(checkpoint, map_location='cpu')
    if loaded:
        load_weights(model, loaded, name=checkpoint)
    number = next((own for _, own in heads(model)), None)
    meta = _describe_classes(cfg)
    if number not in (None, len(meta.get('classes') or ())):
        meta = {}  # the names are of the data set, the head has other classes
    own = (loaded.get('meta') or {}).get('dataset_meta') or {}
    for source, brought in ((cfg.get('saved_in'), cfg.get('dataset_meta') or {}), (checkpoint, own)):
        if brought.get('classes'):
            check_class_names(brought['classes'], f'dataset_meta.classes of {source}', number)
        meta |= brought
    model.cfg, model.dataset_meta = cfg, {key: meta[key] for key in ('classes', 'palette') if meta.get(key)}


def _describe_classes(cfg: Config) -> dict:
    """What a config's test set says of itself; its files needn't be here."""
    if not cfg.get('test_dataloader') or 'saved_in' in cfg:
        return {}
    with in_scope(cfg):
        return dict(build_test_set(cfg, lazy_init=True).metainfo)


@functools.cache  # MMPretrain refuses to know a name twice
def register_models() -> None:
    """Tell MMPretrain and mmengine of our models, so that their own functions take the names.

    These are MMPretrain's ``get_model``, ``list_models``, ``inference_model`` and inferencers, and of mmengine
    ``_base_ = 'vt::...'``, ``hub.get_config`` and ``BaseInferencer.list_models('vt')``. Importing VT changes nothing in
    other libraries: it takes this call. MMSegmentation's inferencer reads the names of its own package alone, and takes
    ``str(vt.apis.find_config(name))``.
    """
    with importing():
        from mmpretrain.apis import ModelHub
    MODULE2PACKAGE['vt'] = DISTRIBUTION
    ModelHub.register_model_index(INDEX, config_prefix=ROOT)
