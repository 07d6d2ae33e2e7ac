"""Read a config file."""

import os
import traceback
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE

from vt._libraries import import_library
from vt.checkpoints.files import REST
from vt.errors import MissingFileError, UserError

from .config_options import apply_options
from .config_parts import leaves
from .folds import enter_fold

DISTRIBUTION = 'visual-transformers'  # name for pip; vt on PyPI is another project
# Folder of configs/, tools/ and model-index.yml. OpenMMLab's libraries look for them in .mim of the package; in the
# repository these are links.
PACKAGE = Path(__file__).parents[1]
ROOT = (PACKAGE / '.mim/configs').resolve().parent


def read_config(path: str, options: dict[str, Any] | None = None) -> Config:
    """Read a config, apply options, and import the library of its default scope.

    A config is a Python file: reading it runs it and all configs that it inherits.
    Data sets with ``data_root=None`` get the config's ``data_root``; an option ``data_root`` also replaces the data
    sets' ``data_root`` where it was the config's. Pipelines and model follow ``image_size``, see
    :mod:`vt.engine.image_size`.

    Args:
        path: path of the config.
        options: options of ``--cfg-options`` by their keys, such as ``model.backbone.depth``.

    Raises:
        MissingFileError: the file does not exist.
        UserError: running the file fails (the message names file and line), or an option does not fit.
    """
    require_file(path, 'config')
    MODULE2PACKAGE.update(mmseg='mmseg', vt='vt')  # finds _base_ = 'vt::...' under any name of the distribution
    try:
        cfg = Config.fromfile(path)
    except RecursionError as error:
        raise UserError('the config inherits itself: correct _base_') from error
    except FileNotFoundError as error:
        raise UserError(f'{_place(error)}a file does not exist: correct _base_ of the config ({error})') from error
    except Exception as error:
        text = ' '.join(str(error.args[0] if error.args else error).split())
        raise UserError(f'{_place(error)}{type(error).__name__}: {text}') from error
    _remove_own_scope(list(cfg.values()))
    root = cfg.get('data_root')
    apply_options(cfg, options or {})
    enter_fold(cfg)
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        if isinstance(cfg.get(name), dict):
            _complete_loader(cfg[name], cfg, root)
    import_library(cfg.get('default_scope', 'mmpretrain'))
    if 'image_size' in cfg:
        from .image_size import enter_image_size  # imports PyTorch, which --help does not need

        enter_image_size(cfg)
    return cfg


def _remove_own_scope(value: Any) -> None:
    """Remove ``_scope_='vt'``, which mmengine adds for ``_base_ = 'vt::...'``: names are of the default scope."""
    if isinstance(value, dict) and value.get('_scope_') == 'vt':
        del value['_scope_']
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        _remove_own_scope(part)


def _complete_loader(loader: dict, cfg: Config, root: str | None) -> None:
    """Set the dataloader defaults of OpenMMLab's tools, and ``data_root`` of data sets without one or with ``root``."""
    import torch  # --help does not need it

    loader.setdefault('pin_memory', torch.cuda.is_available())
    loader.setdefault('persistent_workers', loader.get('num_workers') not in (0, None))
    if cfg.get('default_scope', 'mmpretrain') == 'mmpretrain':
        loader.setdefault('collate_fn', dict(type='default_collate'))
    for dataset in leaves(loader.get('dataset')):
        if dataset.get('data_root', '') in (None, root):
            dataset['data_root'] = cfg.get('data_root', '')


def _place(error: Exception) -> str:
    """Return file and line of the config, or of an inherited one, in which an error was raised."""
    if isinstance(error, SyntaxError):
        return f'line {error.lineno}: ' if error.lineno else ''
    modules = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == '<module>']
    return f'{os.path.relpath(modules[-1].filename)}, line {modules[-1].lineno}: ' if modules else ''


def require_file(path: str, what: str) -> None:
    """Raise ``MissingFileError`` if there is no such file or folder of shards; URLs are not checked."""
    if '://' not in path and not (Path(path).is_file() or Path(path, REST).is_file()):
        raise MissingFileError(f'there is no {what} {path}')
