"""Reading a config, and entering what a command line says into it."""

import copy
import functools
import hashlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.utils import import_modules_from_strings

from vt._libraries import import_library
from vt.checkpoints.reading import REST
from vt.errors import MissingFileError, UserError

DISTRIBUTION = 'visual-transformers'  # as pip knows it; vt on PyPI is another project
# Where configs/, tools/ and model-index.yml lie: in an installed package's .mim, else beside the package.
PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE / '.mim' if (PACKAGE / '.mim').is_dir() else PACKAGE.parent
NUM_FOLDS, FOLD_SEED = 5, 0  # by default; of the shuffling, so that all runs have the same folds


def read_config(path: str, options: dict[str, Any] | None = None, quietly: bool = False) -> Config:
    """Read a config, enter options, and import the package whose parts it names without a prefix.

    A config is Python: to read it is to run it and all that it inherits, and standard error says so. A data set that
    leaves its folder open, ``data_root=None``, gets the config's own ``data_root``; with an option ``data_root`` so
    does one that had the config's. Pipelines and model follow ``image_size``, see :mod:`vt.engine.image_size`.

    Args:
        path: of the config.
        options: of ``--cfg-options``, by their keys, such as ``model.backbone.depth``.
        quietly: say nothing, for who asked for it by a line of Python.

    Raises:
        MissingFileError: it is not there.
        UserError: running it fails; the line names its file and line. Or it does not take an option.
    """
    require_file(path, 'config')
    if not quietly:
        announce(f'{path} and the configs it inherits')
    MODULE2PACKAGE['mmseg'] = 'mmseg'  # so that _base_ = 'mmseg::...' is found whatever its distribution is called
    MODULE2PACKAGE['vt'] = DISTRIBUTION
    try:
        cfg = Config.fromfile(path)
    except RecursionError as error:
        raise UserError('it inherits itself by _base_: take the circle out') from error
    except FileNotFoundError as error:
        raise UserError(f'{_place(error)}a file is not there: correct _base_ of the config ({error})') from error
    except Exception as error:
        text = ' '.join(str(error.args[0] if error.args else error).split())
        raise UserError(f'{_place(error)}{type(error).__name__}: {text}') from error
    root = cfg.get('data_root')
    apply_options(cfg, options or {})
    enter_fold(cfg)
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        if isinstance(cfg.get(name), dict):
            _complete_loader(cfg[name], cfg, root)
    import_library(cfg.get('default_scope', 'mmpretrain'))
    if 'image_size' in cfg:
        from .image_size import enter_image_size  # it asks parts for their arguments, which imports them

        enter_image_size(cfg)
    return cfg


def _complete_loader(loader: dict, cfg: Config, root: str | None) -> None:
    """Enter what the libraries' own tools set for dataloaders, and the config's ``data_root``.

    It is that of data sets that leave theirs open, or that have ``root``, the config's before any option.
    """
    import torch  # not above: --help needs none

    loader.setdefault('pin_memory', torch.cuda.is_available())
    loader.setdefault('persistent_workers', loader.get('num_workers') not in (0, None))
    if cfg.get('default_scope', 'mmpretrain') == 'mmpretrain':
        loader.setdefault('collate_fn', dict(type='default_collate'))
    for dataset in leaves(loader.get('dataset')):
        if dataset.get('data_root', '') in (None, root):
            dataset['data_root'] = cfg.get('data_root', '')


def _place(error: Exception) -> str:
    """File and line of the config, or of one that it inherits, in which an error happened."""
    if isinstance(error, SyntaxError):
        return f'line {error.lineno}: ' if error.lineno else ''
    modules = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == '<module>']
    return f'{os.path.relpath(modules[-1].filename)}, line {modules[-1].lineno}: ' if modules else ''


@functools.cache  # once is enough for one that is read again
def announce(configs: str) -> None:
    """Say on standard error which configs are run to be read."""
    if os.environ.get('RANK', '0') == '0':
        print(f'Running {configs}: a config is Python', file=sys.stderr)


def apply_options(cfg: Config, options: dict[str, Any]) -> None:
    """Enter ``--cfg-options``; packages that ``custom_imports`` names now are imported.

    Raises:
        UserError: the config does not take one of them.
    """
    for key, value in options.items():
        name, *path = key.split('.')
        if not (name and all(path)):
            raise UserError(f'--cfg-options {key}={value}: a name in it is empty')
        try:
            cfg[name] = _entered(cfg.get(name), path, value, name)
        except UserError as error:
            raise UserError(f'--cfg-options {key}={value}: {error}') from error
    if any(key.split('.')[0] == 'custom_imports' for key in options):
        try:
            import_modules_from_strings(**cfg.custom_imports)
        except (ImportError, TypeError) as error:
            raise UserError(f'--cfg-options: custom_imports={dict(cfg.custom_imports)}: {error}') from error


def _entered(place: Any, path: list[str], value: Any, where: str) -> Any:
    """A copy of what stands somewhere in a config, with a value entered at a path below; dicts merge as in configs."""
    if not path:
        if isinstance(value, dict) and place is not None:
            merged = Config(dict(place=place))
            try:
                merged.merge_from_dict(dict(place=value))
            except TypeError as error:
                raise UserError(f'the config has no such place ({error})') from error
            return merged.place
        if value not in (None, [], ()) and _holds_parts(place) and not _holds_parts(value):
            inner = f'{where}.type' if isinstance(place, dict) else f'{where}.0.type'
            raise UserError(f'{where} is a part, or a list of them: set {inner}, or its options')
        return value
    name, *rest = path
    if isinstance(place, (list, tuple)):
        numbers = [str(index) for index in range(len(place))]
        is_new = name == str(len(place)) and (rest == ['type'] or (not rest and _holds_parts(value)))
        if name not in numbers and not is_new:
            words = f'{where} is a list of {len(place)}'
            more = f', set {where}.{len(place)}.type for one more' if _holds_parts(place) else ''
            raise UserError(f'the config has no such place ({words}: give a number below{more}, or set the whole list)')
        items = [*place, *([None] if is_new else [])]
        items[int(name)] = _entered(items[int(name)], rest, value, f'{where}.{name}')
        return type(place)(items)
    if isinstance(place, dict) or (place is None and not name.isdigit()):
        copied = ConfigDict(place or {})
        copied[name] = _entered(copied.get(name), rest, value, f'{where}.{name}')
        return copied
    raise UserError(f'the config has no such place ({where} is {place!r})')


def _holds_parts(value: Any) -> bool:
    """Whether it is the config of a part, or a list of such."""
    return any('type' in item for item in dicts_in(value))


def enter_fold(cfg: Config) -> None:
    """Where a config has a ``fold``, train on the other folds of its training data, and validate on that one.

    There are ``num_folds`` of them, by MMPretrain's ``KFoldDataset``, with the samples shuffled once. A test of what
    the run validates on is one of the fold, too; other test data stay.

    Raises:
        UserError: there is no such fold, there are several data sets, or the config has other folds.
    """
    fold, number = cfg.get('fold'), cfg.get('num_folds', NUM_FOLDS)
    if fold is None:
        if 'num_folds' in cfg:
            raise UserError(f'num_folds={number} has no effect without a fold: set fold')
        return
    if not (type(fold) is type(number) is int and 0 <= fold < number):
        raise UserError(f'fold={fold} of num_folds={number}: give one from 0 to num_folds - 1')
    train, val = ([*leaves((cfg.get(name) or {}).get('dataset'))] for name in ('train_dataloader', 'val_dataloader'))
    if not len(train) == len(val) == 1 or number < 2:
        raise UserError(f'fold={fold} needs one data set to train on, one to validate on, and num_folds of at least 2')
    own = cfg.val_dataloader.dataset
    if str(own.get('type')).endswith('KFoldDataset'):
        if (own.fold, own.num_splits) != (fold, number):  # else it is the config that a run has left
            raise UserError(f'fold={fold}: val_dataloader.dataset is a fold already, {own.fold} of {own.num_splits}')
        return
    (data,), (shown,) = train, val
    validation = copy.deepcopy(data) | {key: shown[key] for key in ('pipeline', 'test_mode') if key in shown}
    options = dict(type='mmpretrain.KFoldDataset', fold=fold, num_splits=number, seed=FOLD_SEED)
    is_tested = cfg.get('test_dataloader') == cfg.val_dataloader
    inner = copy.deepcopy(data)
    data.clear()
    data.update(options, dataset=inner)  # in its place, below wrappers that repeat or balance it
    cfg.val_dataloader.dataset = dict(options, dataset=validation, test_mode=True)
    if is_tested:
        cfg.test_dataloader = copy.deepcopy(cfg.val_dataloader)


def digest_config(cfg: Config, amp: str | None = None) -> str:
    """A digest of what a run trains: every setting of its config, the same in every process and on every machine.

    Left out are the seed and what says where it runs: ``work_dir``, ``launcher``, and whether loaders pin memory, which
    follows from the machine. ``amp`` is the mixed precision of ``--amp``, None without it.
    """
    settings = cfg.to_dict() | dict(work_dir=None, launcher=None, amp=amp or False)
    settings['randomness'] = (settings.get('randomness') or {}) | dict(seed=None)
    for name, loader in settings.items():
        if name.endswith('_dataloader') and isinstance(loader, dict):
            settings[name] = loader | dict(pin_memory=None)
    text = json.dumps(as_data(settings), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def as_data(value: Any) -> Any:
    """A value of a config as JSON knows it; classes and functions by their names, other objects as they show."""
    match value:
        case dict():
            return {key if isinstance(key, str) else repr(key): as_data(item) for key, item in value.items()}
        case list() | tuple():
            return [as_data(item) for item in value]
        case set() | frozenset():
            return sorted(json.dumps(as_data(item), sort_keys=True) for item in value)
        case None | bool() | int() | float() | str():
            return value
    if hasattr(value, 'tolist'):  # an array shows a part of itself
        return as_data(value.tolist())
    name = getattr(value, '__qualname__', None)
    return f'{value.__module__}.{name}' if name else re.sub(r' at 0x[0-9a-f]+', '', repr(value))


def leaves(dataset: Any) -> list[dict]:
    """The data sets below wrappers such as ``RepeatDataset`` and ``ConcatDataset``."""
    if not isinstance(dataset, dict):
        return []
    inner = dataset.get('datasets') or ([dataset['dataset']] if 'dataset' in dataset else [])
    return [leaf for part in inner for leaf in leaves(part)] if inner else [dataset]


def dicts_in(part: Any) -> list[dict]:
    """The configs in a place that has one, a list of them, or none."""
    return [item for item in (part if isinstance(part, (list, tuple)) else [part]) if isinstance(item, dict)]


def steps_in(pipeline: Any) -> Iterator[dict]:
    """The steps of a pipeline, each before those that stand inside it, as in test-time augmentation."""
    for step in pipeline if isinstance(pipeline, (list, tuple)) else ():
        if isinstance(step, dict):
            yield step
        yield from steps_in(step.get('transforms') if isinstance(step, dict) else step)


def require_file(path: str, what: str) -> None:
    """Raise ``MissingFileError`` unless ``path`` is a file; an address (``https://...``) is left to the loader."""
    if '://' not in path and not (Path(path).is_file() or Path(path, REST).is_file()):
        raise MissingFileError(f'there is no {what} {path}')
