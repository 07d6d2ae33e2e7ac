"""The short names of settings, such as ``epochs`` for ``train_cfg.max_epochs``: one table for all that reads them.

From it come the settings of commands (``vt train swin-tiny data=photos epochs=30``), the keyword arguments of
:func:`vt.train`, the page *All settings*, and the hints for a name that is misspelt or is another framework's.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from mmengine.config import Config, ConfigDict

from vt.errors import UserError

from .config_files import variables_in
from .options import apply_options
from .parts import LOADERS, is_segmentation, leaves, model_of

EMA_DECAY = 0.9998  # of ``ema=true``, as in timm's script
LOGS = dict(tensorboard='vt.TensorboardBackend', wandb='vt.WandbBackend', mlflow='vt.MLflowBackend')
AUGMENTS = ('AutoAugment', 'RandAugment')
# The score that early stopping watches, by the type of the metric.
SCORES = dict(Accuracy='accuracy/top1', IoUMetric='mIoU', AveragePrecision='multi-label/mAP')


@dataclass(frozen=True)
class ShortName:
    """A short name of a setting.

    Attributes:
        name: the name.
        kinds: types of its value.
        text: what it sets, in a sentence.
        keys: keys of the config that get the value; empty if ``apply`` sets it, or if the name is a key itself.
        apply: sets the value in a config, where it is not copied.
        others: its names in other frameworks, for hints.
    """

    name: str
    kinds: tuple[type, ...]
    text: str
    keys: tuple[str, ...] = ()
    apply: Callable[[Config, Any], None] | None = None
    others: str = ''

    def check(self, value: Any) -> Any:
        """Return a value of the right type; raise a UserError for another one."""
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and float in self.kinds and int not in self.kinds:
            return float(value)
        if isinstance(value, os.PathLike) and str in self.kinds:
            return os.fspath(value)
        if (isinstance(value, bool) and bool not in self.kinds) or not isinstance(value, self.kinds):
            words = dict(int='a whole number', float='a number', bool='true or false', str='a text')
            words |= dict(list='a list', dict='a dict')
            raise UserError(f'{self.name}={value} must be {" or ".join(words[kind.__name__] for kind in self.kinds)}')
        return value


def is_setting(cfg: Config, name: str, options: Mapping[str, Any]) -> bool:
    """Return whether a config, or an option, sets a short name.

    Files of configs may have variables of such names: what they read themselves, or of another type, is no setting.
    """
    value = cfg.get(name)
    if value is None or name in options:
        return value is not None
    return isinstance(value, SHORT_NAMES[name].kinds) and name not in variables_in(cfg.filename or '')


def apply_short_names(cfg: Config, options: Mapping[str, Any]) -> None:
    """Replace the short names in a config, in place, by the settings that they stand for.

    Args:
        cfg: the config, with options applied.
        options: the options by their keys, among which a long name may contradict a short one.

    Raises:
        UserError: a value of another type, two values for one setting, or a setting that the config has no place for.
    """
    for short in SHORT_NAMES.values():
        if not is_setting(cfg, short.name, options):
            continue
        value = short.check(cfg[short.name])
        if not (short.keys or short.apply):
            continue
        for key in short.keys:
            if options.get(key, value) != value:
                raise UserError(f'{short.name}={value} and {key}={options[key]} are one setting: give one of them')
            apply_options(cfg, {key: value})
        if short.apply:
            short.apply(cfg, value)
        cfg.pop(short.name)


def hint_for(name: str) -> str | None:
    """Return the setting that another framework calls so, or the short name that is nearly this one."""
    found = next((short.name for short in SHORT_NAMES.values() if name in short.others.split()), None)
    near = difflib.get_close_matches(name, SHORT_NAMES, n=1, cutoff=0.7)
    return found or (near[0] if near else None)


def _set_workers(cfg: Config, number: int) -> None:
    for loader in filter(None, map(cfg.get, LOADERS)):
        loader.num_workers = number
        if not number:
            loader.persistent_workers = False


def set_classes(cfg: Config, number: int | str) -> None:
    """Set the number of classes of all heads, and of what mixes images, in place."""
    model = model_of(cfg)
    auxiliary = model.get('auxiliary_head') or []
    heads = [model.get('head'), model.get('decode_head'), *(auxiliary if isinstance(auxiliary, list) else [auxiliary])]
    mixing = [part for part in (cfg.get('data_preprocessor'), model.get('data_preprocessor')) if part]
    for part in [*filter(None, heads), *(part for part in mixing if 'num_classes' in part)]:
        part['num_classes'] = number


def _stop_early(cfg: Config, patience: int) -> None:
    metrics = cfg.get('val_evaluator') or {}
    kinds = [str(metric.get('type')).split('.')[-1] for metric in (metrics if isinstance(metrics, list) else [metrics])]
    score = next((SCORES[kind] for kind in kinds if kind in SCORES), None)
    if score is None:
        words = "add dict(type='EarlyStoppingHook', monitor=SCORE, patience=N) to custom_hooks"
        raise UserError(f'patience={patience} requires a metric of {", ".join(SCORES)}: {words}')
    _add_hook(cfg, type='EarlyStoppingHook', monitor=score, patience=patience)


def _average(cfg: Config, decay: float | bool) -> None:
    decay = EMA_DECAY if decay is True else float(decay)
    if not 0 <= decay < 1:
        raise UserError(f'ema={decay:g} must be at least 0 and less than 1: it is the decay of the averaged weights')
    if decay:
        _add_hook(cfg, type='EMAHook', momentum=round(1 - decay, 12), update_buffers=True)


def _add_hook(cfg: Config, **hook: Any) -> None:
    cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), ConfigDict(hook)]


def _smooth(cfg: Config, value: float) -> None:
    head = model_of(cfg).get('head')
    if head is None:
        raise UserError(f'label_smoothing={value:g} requires a classifier')
    smooth = dict(type='LabelSmoothLoss', label_smooth_val=value, mode='original')
    head['loss'] = ConfigDict(smooth if value else dict(type='CrossEntropyLoss', loss_weight=1.0))


def _mix(cfg: Config, alpha: float) -> None:
    if is_segmentation(cfg):
        raise UserError(f'mixup={alpha:g} requires a classifier')
    model_of(cfg)['train_cfg'] = ConfigDict(augments=[dict(type='Mixup', alpha=alpha)]) if alpha else None
    if alpha and (preprocessor := cfg.get('data_preprocessor')):
        preprocessor.setdefault('num_classes', model_of(cfg)['head']['num_classes'])


def _drop_paths(cfg: Config, rate: float) -> None:
    is_timm = 'TimmBackbone' in str((model_of(cfg).get('backbone') or {}).get('type'))
    apply_options(cfg, {f'model.backbone.{"options." * is_timm}drop_path_rate': rate})


def _augment(cfg: Config, name: str) -> None:
    kinds = {
        'none': None,
        'autoaugment': dict(type='AutoAugment', policies='imagenet'),
        'randaugment': dict(
            type='RandAugment',
            policies='timm_increasing',
            num_policies=2,
            total_level=10,
            magnitude_level=9,
            magnitude_std=0.5,
        ),
    }
    if name not in kinds or is_segmentation(cfg):
        raise UserError(f'augment={name} must be {", ".join(kinds)}, of a classifier')
    for dataset in leaves(cfg.train_dataloader.dataset):
        steps = [step for step in dataset.pipeline if str(step.get('type')).split('.')[-1] not in AUGMENTS]
        dataset.pipeline = [*steps[:-1], *([ConfigDict(kinds[name])] if kinds[name] else []), steps[-1]]


def _log(cfg: Config, names: str | list) -> None:
    visualizer = ConfigDict(cfg.get('visualizer') or dict(type='Visualizer'))
    backends = [*(visualizer.get('vis_backends') or [dict(type='LocalVisBackend')])]
    for name in [names] if isinstance(names, str) else names:
        if name not in LOGS:
            raise UserError(f'log={name} must be {", ".join(LOGS)}, or several of them')
        if find_spec(name) is None:
            raise UserError(f'log={name} requires the package {name}: pip install {name}')
        backends.append(dict(type=LOGS[name]))
    cfg.visualizer = visualizer | dict(vis_backends=backends)


def _choose_device(cfg: Config, device: str) -> None:
    kind, _, index = str(device).partition(':')
    if kind not in ('cpu', 'cuda', 'mps') or (index and not index.isdecimal()):
        raise UserError(f'device={device} must be cpu, cuda, mps, or a GPU by its number, such as cuda:1')
    if kind == 'cuda' and not torch.cuda.is_available():
        raise UserError(f'device={device}: PyTorch finds no GPU on this machine; use cpu')
    if kind == 'cpu' or index:  # CUDA has not started yet
        os.environ['CUDA_VISIBLE_DEVICES'] = index if kind == 'cuda' else ''


SHORT_NAMES: dict[str, ShortName] = {
    short.name: short
    for short in (
        ShortName('data', (str,), 'folder, table or saved data set: see `vt check data=PATH`',
                  others='data_dir data_path'),
        ShortName('classes', (list, str), 'names of the classes of masks by label, or a file with a name per line'),
        ShortName('colours', (dict, str), 'colours of the classes of masks, {name: (r, g, b)}, or a file of them'),
        ShortName('weights', (str,), 'weights to begin with: timm, torchvision, a file, the folder of a run, or none',
                  others='pretrained checkpoint load_from resume_from'),
        ShortName('val_fraction', (float,), 'part of the training data of each class that validates',
                  others='val_split'),
        ShortName('fold', (int,), 'number of the fold of the training data that validates, of num_folds (5)'),
        ShortName('epochs', (int,), 'passes over the training data', ('train_cfg.max_epochs',),
                  others='epoch max_epoch max_epochs num_epochs total_epochs num_train_epochs'),
        ShortName('iterations', (int,), 'training steps, of recipes that count them', ('train_cfg.max_iters',),
                  others='iters max_iters total_iters max_steps steps'),
        ShortName('batch_size', (int,), 'training samples a step, of each process', ('train_dataloader.batch_size',),
                  others='bs batch samples_per_gpu per_device_train_batch_size'),
        ShortName('lr', (float,), 'learning rate', ('optim_wrapper.optimizer.lr',), others='learning_rate lr0 base_lr'),
        ShortName('weight_decay', (float,), 'weight decay', ('optim_wrapper.optimizer.weight_decay',), others='wd'),
        ShortName('image_size', (int,), 'side of the images in pixels', others='imgsz img_size input_size crop_size'),
        ShortName('num_classes', (int, str), 'number of classes; auto for that of the data', apply=set_classes,
                  others='nc nb_classes'),
        ShortName('freeze', (str, list), 'parts that are not trained, such as backbone',
                  others='frozen freeze_backbone'),
        ShortName('patience', (int,), 'validations without a better score before the run stops', apply=_stop_early,
                  others='early_stopping early_stopping_patience'),
        ShortName('ema', (bool, float), 'average the weights: true, or the decay', apply=_average,
                  others='model_ema model_ema_decay'),
        ShortName('accumulate', (int,), 'batches a step', ('optim_wrapper.accumulative_counts',),
                  others='accumulate_grad_batches gradient_accumulation_steps grad_accum_steps'),
        ShortName('clip_grad', (float,), 'largest norm of the gradient', ('optim_wrapper.clip_grad.max_norm',),
                  others='gradient_clip_val max_grad_norm clip'),
        ShortName('imbalance', (str,), 'correction of rare classes: weighted, focal or balanced',
                  others='class_weights'),
        ShortName('label_smoothing', (float,), 'part of the target that all classes share', apply=_smooth,
                  others='smoothing label_smooth'),
        ShortName('mixup', (float,), 'alpha of Mixup; 0 for none', apply=_mix, others='mixup_alpha'),
        ShortName('drop_path', (float,), 'rate of stochastic depth', apply=_drop_paths,
                  others='drop_path_rate'),
        ShortName('augment', (str,), 'augmentation of images: none, autoaugment or randaugment', apply=_augment,
                  others='aa auto_augment augmentation'),
        ShortName('workers', (int,), 'processes that load data, of each loader', apply=_set_workers,
                  others='num_workers workers_per_gpu dataloader_num_workers'),
        ShortName('seed', (int,), 'seed of all random numbers', ('randomness.seed',), others='random_seed'),
        ShortName('amp', (bool,), 'mixed precision', others='fp16 bf16 half'),
        ShortName('device', (str,), 'cpu, cuda, or a GPU by its number, such as cuda:1', apply=_choose_device,
                  others='gpu gpus accelerator'),
        ShortName('log', (str, list), 'also log to tensorboard, wandb or mlflow', apply=_log,
                  others='logger report_to'),
        ShortName('save_every', (int,), 'epochs, or iterations, between checkpoints',
                  ('default_hooks.checkpoint.interval',),
                  others='save_period save_interval checkpoint_interval'),
        ShortName('work_dir', (str,), 'folder of the run', others='output_dir out_dir default_root_dir'),
    )
}  # fmt: skip
