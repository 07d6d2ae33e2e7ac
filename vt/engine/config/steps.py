"""Prepare a run: the ordered steps from a config file to the settings of a run."""

import argparse
import copy
import functools
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config

from vt._libraries import import_library
from vt.checkpoints.reading import Checkpoint, read
from vt.datasets.folder_contents import SPLIT_OF
from vt.engine.hooks.num_classes import names_in_config
from vt.engine.reporting import in_one_line
from vt.engine.run.processes import join_processes
from vt.errors import MissingFileError, UserError
from vt.files import ROOT, read_names
from vt.hints import as_typed
from vt.private_names import read_file

from .check_settings import accepted_arguments, check_config, find_types
from .compose import compose, short_models
from .data import Data, apply_num_classes
from .default_hooks import apply_defaults
from .imbalance import apply_imbalance
from .options import apply_options
from .own_data import NO_WEIGHTS, apply_data, apply_weights
from .parts import LOADERS, Preparation, datasets_of, find_wrapper, leaves, model_of, preparation_of, steps_in
from .pretrained import TIMM, find_weights, prepare_as_published, read_timm_config
from .short_names import apply_short_names

DISTRIBUTION = 'visual-transformers'  # name for pip; vt on PyPI is another project
NUM_FOLDS, FOLD_SEED = 5, 0  # defaults; samples are shuffled by a fixed seed, so that all runs have the same folds
HELD_OUT = ('KFoldDataset', 'HeldOut')  # wrappers of training data, a part of which validates
LAST_READING_STEP = 'image_size'  # the last step of reading
UNREAD = (UserError, OSError)  # of data that cannot be read
SIDES = ('scale', 'scales', 'size', 'crop_size', 'target_size')  # arguments of a step of a pipeline, in pixels


def config_steps() -> dict[str, 'Step']:
    """Return all steps from a config file to the settings of a run, in their order.

    Every command takes those up to ``image_size``, see :func:`read_config`; a run takes all.
    """
    return {
        '--cfg-options': apply_cfg_options,
        'data': lambda run: run.notes.extend(apply_data(run.cfg, run.request.options)),
        'weights': lambda run: run.notes.extend(apply_weights(run.cfg, run.request.options)),
        'short names': lambda run: apply_short_names(run.cfg, run.request.options),
        'fold': apply_fold,
        'defaults of loaders': apply_loader_defaults,
        'val_fraction': apply_val_fraction,
        'arguments': apply_arguments,
        'image_size': apply_image_size,
        'check of the settings': lambda run: check_config(run.cfg, run.request.options),
        'processes': lambda run: join_processes(run.cfg),
        'classes of the data': apply_classes,
        'imbalance': apply_class_weights,
        'mixed precision': lambda run: apply_amp(run.cfg, run.request.amp or run.cfg.pop('amp', False)),
        'defaults of runs': lambda run: apply_defaults(run.cfg),
        'tested weights': apply_tested_weights,
    }


@dataclass(frozen=True)
class RunOptions:
    """Options of a run that command-line arguments give in addition to the config.

    Attributes:
        options: ``--cfg-options``, by their keys, such as ``model.backbone.depth``.
        work_dir: ``--work-dir``; None for the config's, or ``work_dirs/<name of the config>``.
        launcher: ``--launcher``; None for the config's.
        compiles: ``--compile``.
        validates: not ``--no-validate``.
        scales_lr: ``--auto-scale-lr``.
        amp: ``--amp``, see :func:`choose_dtype`.
        trains: whether the run trains.
        shows: whether the config is only printed: a step whose data cannot be read is then skipped.
        checkpoint: the weights to test or to predict with, as ``pretrained`` of :func:`vt.apis.get_model`.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    work_dir: str | None = None
    launcher: str | None = None
    compiles: bool = False
    validates: bool = True
    scales_lr: bool = False
    amp: bool = False
    trains: bool = True
    shows: bool = False
    checkpoint: str | os.PathLike | bool | None = None

    @classmethod
    def of(cls, args: argparse.Namespace, **others: Any) -> 'RunOptions':
        """Return the options in the arguments of ``vt train`` or ``vt test``, with other attributes."""
        return cls(
            options=args.cfg_options or {},
            work_dir=args.work_dir,
            launcher=args.launcher,
            compiles=args.compile,
            validates=not getattr(args, 'no_validate', False),
            scales_lr=getattr(args, 'auto_scale_lr', False),
            amp=args.amp,
            **others,
        )


@dataclass
class Run:
    """A run: its config, and what is built and read for it, each once.

    Attributes:
        cfg: the config, which the steps complete.
        request: the options given in addition to the config.
        notes: lines for the log.
        start: path or address of the requested weights; None without.
        published: preprocessing of images for these weights, if a library published them.
    """

    cfg: Config
    request: RunOptions = field(default_factory=RunOptions)
    notes: list[str] = field(default_factory=list)
    start: str | None = None
    published: Preparation | None = None

    @functools.cached_property
    def data(self) -> Data:
        """The data sets of the config."""
        return Data(self.cfg)

    @property
    def scope(self) -> str:
        """Library of types without a prefix."""
        return self.cfg.get('default_scope') or 'mmpretrain'

    @functools.cached_property
    def checkpoint(self) -> Checkpoint | None:
        """The content of the requested checkpoint."""
        return None if self.start is None else read(self.start)

    @property
    def dataset_meta(self) -> dict[str, Any]:
        """``classes`` and ``palette`` of the test data by their config or, of published weights, by their library."""
        published = self.published.classes if self.published else ()  # Kinetics' data set has no names without its list
        return (dict(classes=published) if published else {}) | names_in_config(self.cfg)

    @property
    def inputs(self) -> Preparation:
        """How images are preprocessed for the network."""
        return preparation_of(self.cfg)


Step = Callable[[Run], None]


def prepare(path: str, request: RunOptions) -> Run:
    """Read a config for a run, check it, and complete it with what every run gets.

    A setting that does not exist, has no effect or has an invalid value is a UserError.
    """
    *_, (_, run) = prepare_in_steps(path, request)
    return run


def prepare_in_steps(path: str, request: RunOptions) -> Iterator[tuple[str, Run]]:
    """Yield the run of the config in the file, and again after each step of :func:`prepare`, with the step's name."""
    run = Run(_read_file(path, request.options.get('weights') not in (None, NO_WEIGHTS)), request)
    yield path, run
    for name, step in config_steps().items():
        step(run)
        yield name, run


def complete(cfg: Config, amp: bool = False) -> Run:
    """Return the run of a copy of a config, after the steps of a run; one that is complete does not change."""
    run = Run(copy.deepcopy(cfg), RunOptions(amp=amp))
    steps = config_steps()
    for name in [*steps][[*steps].index(LAST_READING_STEP) + 1 :]:
        steps[name](run)
    return run


def read_config(path: str, options: Mapping[str, Any] | None = None) -> Config:
    """Read a config, apply options, and import the library of its default scope.

    A config is a Python file: reading it runs it and all configs that it inherits. An error in it is a UserError with
    file and line.

    Args:
        path: path of the config, or ``timm:NAME``.
        options: options of ``--cfg-options`` by their keys, such as ``model.backbone.depth``.
    """
    steps = prepare_in_steps(path, RunOptions(options or {}))
    return next(run.cfg for name, run in steps if name == LAST_READING_STEP)


def _read_file(path: str, fine_tunes: bool) -> Config:
    if path.startswith(TIMM):
        return read_timm_config(path)
    if (short := Path(path)) in short_models().values():
        return compose(short, fine_tunes)
    _require_config(path)
    try:
        cfg = read_file(path)
    except FileNotFoundError as error:
        raise UserError(f'{_place(error)}{in_one_line(error)}: {_similar_base(error)}') from error
    except Exception as error:
        raise UserError(f'{_place(error)}{in_one_line(error)}') from error
    _remove_own_scope(list(cfg.values()))
    return cfg


def _require_config(path: str) -> None:
    """Raise ``UserError`` if there is no config, with advice if the path is a checkpoint or a folder."""
    place = Path(path)
    if not place.exists() or place.suffix in ('.py', '.yml', '.yaml', '.json'):
        require_file(path, 'config')
        return
    configs = [*map(str, (place if place.is_dir() else place.parent).glob('*.py'))]
    advice = f'give {configs[0] if len(configs) == 1 else "a config"} first, and then the weights'
    if (place / 'config.json').is_file():
        advice = f'{as_typed(f"vt predict {path} {path} INPUT")} predicts with the saved model in this folder'
    elif place.suffix == '.safetensors':
        command = as_typed(f'vt publish --show {path} --save-config model.py')
        advice = f'{command} writes its config, if VT published it'
    raise UserError(f'{path} is not a config: {advice}')


def _similar_base(error: FileNotFoundError) -> str:
    """Return what to do about a missing base, by its name: a config of VT is found from any folder as ``vt::...``."""
    names = {path.name: path.relative_to(ROOT / 'configs') for path in (ROOT / 'configs').rglob('*.py')}
    missing = re.findall(r'[^/\'"]+\.py', str(error))
    near = get_close_matches(missing[-1], names, n=1, cutoff=0.9) if missing else []
    return f"write _base_ = 'vt::{names[near[0]].as_posix()}'" if near else 'correct _base_, or the path'


def _place(error: Exception) -> str:
    """Return file and line of the config, or of an inherited one, in which an error was raised."""
    modules = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == '<module>']
    return f'{os.path.relpath(modules[-1].filename)}, line {modules[-1].lineno}: ' if modules else ''


def _remove_own_scope(value: Any) -> None:
    """Remove ``_scope_='vt'``, which mmengine adds for ``_base_ = 'vt::...'``: names are of the default scope."""
    if isinstance(value, dict) and value.get('_scope_') == 'vt':
        del value['_scope_']
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        _remove_own_scope(part)


def require_file(path: str, what: str) -> None:
    """Raise ``MissingFileError`` if there is no such file; URLs are not checked."""
    if '://' not in path and not Path(path).expanduser().is_file():
        raise MissingFileError(f'there is no {what} {path}')


def apply_cfg_options(run: Run) -> None:
    """Apply ``--cfg-options``; ``data_root`` also replaces the data sets' where it was the config's."""
    cfg = run.cfg
    root = cfg.get('data_root')
    apply_options(cfg, run.request.options)
    for dataset in datasets_of(cfg) if 'data_root' in run.request.options else ():
        if root is not None and dataset.get('data_root') == root:
            dataset['data_root'] = cfg.data_root


def apply_fold(run: Run) -> None:
    """Apply ``fold`` and ``num_folds``: hold out one fold of the training data for validation.

    The folds are those of MMPretrain's ``KFoldDataset``, with the samples shuffled once. If the config tests on its
    validation data, it tests on the fold as well; other test data are not changed.
    """
    cfg = run.cfg
    fold, number = cfg.get('fold'), cfg.get('num_folds', NUM_FOLDS)
    if fold is None:
        if 'num_folds' in cfg:
            raise UserError(f'num_folds={number} has no effect without a fold: set fold')
        return
    if fold not in range(number):
        raise UserError(f'fold={fold} must be 0 to {number - 1} (num_folds={number})')
    if own := _wrapper(cfg, 'KFoldDataset'):
        if (own.fold, own.num_splits) != (fold, number):  # if equal, the config was written by a run
            raise UserError(f'fold={fold}: the config already uses fold {own.fold} of {own.num_splits}: remove fold')
        return
    _hold_out(cfg, 'fold', dict(type='mmpretrain.KFoldDataset', fold=fold, num_splits=number, seed=FOLD_SEED))


def apply_val_fraction(run: Run) -> None:
    """Apply ``val_fraction``: hold out a fraction of each class of the training data for validation.

    Where there is no folder of the training split, the data are those in the folder above it.
    """
    cfg = run.cfg
    fraction = cfg.get('val_fraction')
    if fraction is None:
        return
    if not (isinstance(fraction, float) and 0 < fraction < 1):
        raise UserError(f'val_fraction={fraction} must be a number between 0 and 1')
    if cfg.get('fold') is not None:
        raise UserError(f'val_fraction={fraction} and fold={cfg.fold} both hold out training data: set one of them')
    own = _wrapper(cfg, 'HeldOut')
    if own and own.val_fraction != fraction:
        raise UserError(f'val_fraction={fraction}: the config already holds out {own.val_fraction}: remove it')
    if own:  # the config was written by a run
        return
    _hold_out(cfg, 'val_fraction', dict(type='vt.HeldOut', val_fraction=fraction))
    for data in datasets_of(cfg):
        _use_whole_folder(data)


def _use_whole_folder(data: dict) -> None:
    """Let a data set read the folder above that of its split, if there is no such folder with classes in it."""
    prefix = data.get('data_prefix')
    paths: dict[str, Any] = dict(prefix) if isinstance(prefix, dict) else dict(img_path=prefix)
    folder = os.path.join(data.get('data_root') or '', paths.get('img_path') or '')
    is_classes = str(data.get('type')).endswith('CustomDataset')
    is_split = os.path.isdir(folder) and (not is_classes or any(True for _ in Path(folder).glob('*/')))
    if is_split or not paths.get('img_path'):
        return
    above = {key: os.path.dirname(path.rstrip('/')) for key, path in paths.items()}
    folder = os.path.join(data.get('data_root') or '', above['img_path'])
    splits = [path.name for path in sorted(Path(folder).glob('*/')) if path.name.lower() in SPLIT_OF]
    if len(splits) > 1:
        words = f'{folder} has the splits {", ".join(splits)}, not classes: set data_prefix of the data sets'
        raise UserError(f'{words}, such as train_dataloader.dataset.data_prefix={splits[-1]}, without val_fraction')
    data['data_prefix'] = above if isinstance(prefix, dict) else above['img_path']


def _wrapper(cfg: Config, kind: str) -> dict | None:
    """Return the wrapper of a kind of the training or validation data; None if there is none."""
    found = (find_wrapper((cfg.get(name) or {}).get('dataset'), kind) for name in LOADERS[:2])
    return next(filter(None, found), None)


def _hold_out(cfg: Config, name: str, options: dict) -> None:
    """Wrap the training data so that a part of them trains and the rest validates, seen as the validation data are."""
    parts = [leaves((cfg.get(f'{split}_dataloader') or {}).get('dataset')) for split in ('train', 'val')]
    if [*map(len, parts)] != [1, 1]:
        words = f'requires one data set in train_dataloader and one in val_dataloader: set them, or remove {name}'
        raise UserError(f'{name}={cfg[name]} {words}')
    (data,), (shown,) = parts
    validation = copy.deepcopy(data) | {key: shown[key] for key in ('pipeline', 'test_mode') if key in shown}
    is_tested = cfg.get('test_dataloader') == cfg.val_dataloader
    inner = copy.deepcopy(data)
    data.clear()
    data.update(options, dataset=inner)  # in place: wrappers that repeat or balance the data stay around it
    cfg.val_dataloader.dataset = dict(options, dataset=validation, test_mode=True)
    if is_tested:
        cfg.test_dataloader = copy.deepcopy(cfg.val_dataloader)


def apply_loader_defaults(run: Run) -> None:
    """Set the defaults of loaders in OpenMMLab's tools, and of data sets ``data_root`` and the names in class files.

    The library of the default scope is imported here, whose names the next steps look up.
    """
    cfg = run.cfg
    import_library(cfg.get('default_scope', 'mmpretrain'))
    for loader in [cfg[name] for name in LOADERS if isinstance(cfg.get(name), dict)]:
        loader.setdefault('pin_memory', torch.cuda.is_available())
        loader.setdefault('persistent_workers', loader.get('num_workers') not in (0, None))
        if cfg.get('default_scope', 'mmpretrain') == 'mmpretrain':
            loader.setdefault('collate_fn', dict(type='default_collate'))
    for dataset in datasets_of(cfg):
        if dataset.get('data_root', '') is None:
            dataset['data_root'] = cfg.get('data_root', '')
        for part in (dataset, dataset.get('metainfo') or {}):
            if isinstance(names := part.get('classes'), str) and os.path.isfile(os.path.expanduser(names)):
                part['classes'] = read_names(names)


def apply_arguments(run: Run) -> None:
    """Apply the arguments of a run that are settings."""
    cfg, request = run.cfg, run.request
    if request.compiles and not (cfg.get('speed') or {}).get('compile'):  # keep options of compile
        cfg.merge_from_dict({'speed.compile': True})
    if request.launcher is not None:
        cfg.launcher = request.launcher
        name = cfg.get('config_name') or Path(cfg.filename).stem
        cfg.work_dir = request.work_dir or cfg.get('work_dir') or os.path.join('work_dirs', name)
    if not request.validates:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if request.scales_lr:
        cfg.auto_scale_lr = dict(cfg.get('auto_scale_lr') or {}, enable=True)
    elif request.trains and 'batch_size' in request.options:
        run.notes += describe_rate(cfg)


def describe_rate(cfg: Config) -> list[str]:
    """Return a line if the learning rate of a recipe is for batches of another size, and is not scaled."""
    scaling, rate = cfg.get('auto_scale_lr') or {}, ((cfg.get('optim_wrapper') or {}).get('optimizer') or {}).get('lr')
    recipe, size = scaling.get('base_batch_size'), (cfg.get('train_dataloader') or {}).get('batch_size')
    if rate is None or recipe in (None, size) or scaling.get('enable'):
        return []
    words = f'the rate of the recipe is for batches of {recipe}; --auto-scale-lr scales it'
    return [f'batch_size={size} with lr={rate:g}: {words}']


def apply_image_size(run: Run) -> None:
    """Apply ``image_size``: the side in pixels of the images that the model gets in training, which must be square.

    All sizes in pipelines, of padding and of sliding windows are scaled by the same factor, so that the last size in
    the training pipeline becomes ``image_size``: with 112, a crop of 224 from 256 becomes a crop of 112 from 128.
    Backbones with an argument ``image_size``, or MMPretrain's ``img_size``, get it as well.
    """
    cfg = run.cfg
    if 'image_size' not in cfg:
        return
    side, model = cfg.image_size, model_of(cfg)
    steps = [step for name in LOADERS for step in _steps(cfg.get(name))]
    settings = [*steps, *steps_in(cfg.get('tta_pipeline')), model.get('test_cfg')]
    for preprocessor in (cfg.get('data_preprocessor') or {}, model.get('data_preprocessor') or {}):
        settings += [preprocessor, preprocessor.get('test_cfg')]
    trained = reversed([*_steps(cfg.get('train_dataloader'))] or steps)
    before = next((step[key] for step in trained for key in SIDES if _is_size(step.get(key))), None)
    if before is None or (not isinstance(before, int) and len({*before}) > 1):
        raise UserError(
            f'image_size={side}: training images are resized to {before}, not square; set sizes in the pipelines'
        )
    ratio = side / (before if isinstance(before, int) else before[0])
    for part in {id(part): part for part in settings if part}.values():  # val and test may share one
        for key in part.keys() & {*SIDES, 'stride', 'max_size'}:
            part[key] = _scaled(part[key], ratio)
    backbone, path = model.get('backbone'), 'model.backbone'
    while isinstance(backbone, dict):
        for built in find_types(str(backbone.get('type')), cfg.get('default_scope') or 'mmpretrain', path):
            backbone.update(dict.fromkeys({'image_size', 'img_size'} & {*accepted_arguments(built)[0]}, side))
        name = 'backbone' if backbone.get('backbone') else 'module'  # of vt.LoRAModel
        backbone, path = backbone.get(name), f'{path}.{name}'


def _steps(loader: Any) -> Iterator[dict]:
    for dataset in leaves((loader or {}).get('dataset')):
        yield from steps_in(dataset.get('pipeline'))


def _is_size(value: Any) -> bool:
    """Return whether a value is one or two sides in pixels, not a ratio or a factor."""
    sides = value if isinstance(value, (list, tuple)) else [value]
    return bool(sides) and all(type(each) is int and each > 1 for each in sides)


def _scaled(value: Any, ratio: float) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_scaled(each, ratio) for each in value)
    return round(value * ratio) if _is_size(value) else value


def apply_classes(run: Run) -> None:
    """Apply ``num_classes='auto'``, see :func:`vt.engine.config.data.apply_num_classes`."""
    with suppress(*UNREAD if run.request.shows else ()):
        known = run.checkpoint.dataset_meta.get('classes') if run.checkpoint else None
        apply_num_classes(run.data, known or (run.published and run.published.classes))


def apply_start(run: Run) -> None:
    """Find the requested weights; those of a library also set the preprocessing of images."""
    run.start = find_weights(run.cfg, run.request.checkpoint)
    run.published = prepare_as_published(run.cfg, run.start)


def apply_tested_weights(run: Run) -> None:
    """Let a test load the requested weights, which must be complete."""
    if run.request.checkpoint is not None:
        apply_start(run)
        require_file(run.start, 'checkpoint')
        run.cfg.load_from = run.start
        hook = dict(type='vt.WeightsMatchHook', whole=True, adapts=run.published is not None)
        run.cfg.merge_from_dict({'default_hooks.weights_match': hook})


def apply_class_weights(run: Run) -> None:
    """Apply ``imbalance`` of a training, see :func:`vt.engine.config.imbalance.apply_imbalance`."""
    if run.request.trains:
        with suppress(*UNREAD if run.request.shows else ()):
            run.notes += apply_imbalance(run.cfg, run.data)


def apply_amp(cfg: Config, amp: bool) -> None:
    """Set mixed precision in a config, in place, if ``--amp`` or mmengine's ``AmpOptimWrapper`` asks for it.

    ``optim_wrapper`` gets its type and dtype, and with float16 mmengine's dynamic loss scale; bfloat16 needs none.
    Validation and tests with ``fp16=True`` use the same dtype, see :class:`vt.engine.run.runner.VTRunner`.
    """
    wrapper = cfg.get('optim_wrapper') or {}
    name = str(getattr(wrapper.get('type'), '__name__', wrapper.get('type'))).rpartition('.')[2]
    if not (amp or name in ('AmpOptimWrapper', 'BFloat16AmpOptimWrapper')):  # not a user's own
        return
    dtype = choose_dtype(wrapper)
    if wrapper and dtype == 'bfloat16':
        wrapper.update(type='vt.BFloat16AmpOptimWrapper', dtype=dtype)
        wrapper.pop('loss_scale', None)
    elif wrapper:
        wrapper.update(type='AmpOptimWrapper', dtype=dtype, loss_scale=wrapper.get('loss_scale', 'dynamic'))
    if cfg.get('fsdp') and cfg.get('val_cfg') is not None:
        cfg.val_cfg.fp16 = True  # weights are gathered in bfloat16 there too


def autocast_dtype(cfg: Config) -> torch.dtype | None:
    """Return the dtype of autocast on a GPU in a run in mixed precision; None for other runs."""
    wrapper = cfg.get('optim_wrapper') or {}
    is_mixed = 'Amp' in str(wrapper.get('type')) or (cfg.get('test_cfg') or {}).get('fp16')
    return getattr(torch, choose_dtype(wrapper)) if is_mixed else None


def choose_dtype(wrapper: dict) -> str:
    """Return the dtype of ``--amp`` in training, validation and tests, ``'bfloat16'`` or ``'float16'``.

    It is that of the optimizer wrapper's config if set, else bfloat16 if the GPU supports it natively, else float16.
    On a CPU it is always bfloat16.
    """
    if not torch.cuda.is_available() or ('BFloat16' in str(wrapper.get('type')) and not wrapper.get('dtype')):
        return 'bfloat16'
    usual = 'bfloat16' if torch.cuda.is_bf16_supported(including_emulation=False) else 'float16'
    return str(wrapper.get('dtype') or usual).removeprefix('torch.')
