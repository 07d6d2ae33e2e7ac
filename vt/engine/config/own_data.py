"""Enter one's own data and the weights to begin with into the config of a run: ``data=PATH`` and ``weights=NAME``."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config, ConfigDict

from vt.datasets.recognition import FoundData, recognise
from vt.errors import UserError
from vt.files import read_names

from .parts import AUTO, drop_pretrained, is_segmentation, leaves, model_of, steps_in
from .pretrained import LIBRARIES, find_weights, prepare_as_published
from .short_names import SHORT_NAMES, is_setting, set_classes

NO_WEIGHTS = 'none'  # random ones
SPLITS = ('train', 'val', 'test')
VAL_FRACTION = 0.2  # held out of data without a validation split
# What a model does, and the tasks of data that it can be trained on.
TASKS = dict(classification=('classification', 'multi-label'), segmentation=('segmentation',), video=('video',))
# The model whose config is that of data alone, by their task.
USUAL_MODELS = {'classification': 'vt-resnet18', 'multi-label': 'vt-resnet18', 'segmentation': 'vt-fpn_r18'}
# Addresses of the backbones' weights by library, by their depth.
RESNETS = dict(torchvision='torchvision://resnet{}', timm='timm://resnet{}.a1_in1k')


def usual_model(options: Mapping[str, Any]) -> str:
    """Return the name of a model for the data that options name, for commands that look at data alone."""
    found = recognise(options['data'], classes=options.get('classes'), colours=options.get('colours'))
    return USUAL_MODELS.get(found.task, 'mvit-base-16x4')


def task_of(cfg: Config) -> str:
    """Return what a model does: ``'classification'``, ``'segmentation'`` or ``'video'``."""
    if is_segmentation(cfg):
        return 'segmentation'
    is_video = 'VideoClassifier' in str(model_of(cfg).get('type')) or 'LoadClips' in str(cfg.get('test_dataloader'))
    return 'video' if is_video else 'classification'


def apply_data(cfg: Config, options: Mapping[str, Any]) -> list[str]:
    """Replace the data sets of a config by those at ``data``, in place, and return a line that says what they are.

    Pipelines, batch sizes and samplers stay. Where there is no validation split, a part of the training data validates.

    Raises:
        UserError: there is nothing that can be recognised, or the model is not for such data.
    """
    if not is_setting(cfg, 'data', options):
        return []
    task = task_of(cfg)
    names, colours = (cfg.pop(key) if is_setting(cfg, key, options) else None for key in ('classes', 'colours'))
    names = read_names(names) if isinstance(names, str) else names
    path = SHORT_NAMES['data'].check(cfg.pop('data'))
    found = recognise(path, classes=names, colours=colours, task=task)
    if found.task not in TASKS[task]:
        words = f'data={found.description}: it is for {found.task}, but the model is for {task}'
        raise UserError(f'{words}: choose a model for {found.task}, see `vt models`')
    pipelines = {split: _pipeline(cfg, split) for split in SPLITS}
    for split in SPLITS:
        loader = cfg.get(f'{split}_dataloader')
        if loader is not None:
            loader.dataset = _dataset(found, split, pipelines[split])
    cfg.data_root = str(path)
    name = cfg.get('config_name') or Path(cfg.filename or 'run').stem
    cfg.config_name = f'{name}_{name_of_data(path)}'
    held = 'val' not in found.datasets and cfg.get('fold') is None
    if held and cfg.get('val_fraction') is None:
        cfg.val_fraction = VAL_FRACTION
    if 'val' not in found.datasets and 'test' not in found.datasets and cfg.get('val_dataloader') is not None:
        cfg.test_dataloader = copy.deepcopy(cfg.val_dataloader)
    if found.task != 'segmentation':
        _use_labels(cfg, several=found.task == 'multi-label')
    set_classes(cfg, AUTO)
    return [
        f'data={found.description}'
        + (f'; {cfg.val_fraction:g} of it is held out for validation and tests' if held else '')
    ]


def _pipeline(cfg: Config, split: str) -> list[Any]:
    dataset = next(iter(leaves((cfg.get(f'{split}_dataloader') or {}).get('dataset'))), {})
    steps = dataset.get('pipeline') or []
    if steps and not any('Load' in str(step.get('type')) for step in steps_in(steps)):
        words = f'{split}_dataloader.dataset.pipeline reads no files, since the data of this config are in memory'
        raise UserError(f'data: {words}: name the model alone, such as vt-resnet18, or another config')
    return copy.deepcopy(steps)


def _dataset(found: FoundData, split: str, pipeline: list[Any]) -> ConfigDict:
    """Return the data set of a split, or of the one from which its samples are held out."""
    given = (
        found.datasets.get(split) or found.datasets['val' if split == 'test' and 'val' in found.datasets else 'train']
    )
    steps = pipeline
    if found.mask_loading:
        steps = [found.mask_loading if 'LoadAnnotations' in str(step.get('type')) else step for step in pipeline]
    return ConfigDict(copy.deepcopy(given), pipeline=steps, **(dict(test_mode=True) if split != 'train' else {}))


def _use_labels(cfg: Config, several: bool) -> None:
    """Let head and metrics of a classifier expect one or several labels, of any number of classes."""
    head = model_of(cfg)['head']
    head['topk'] = (1,)
    metrics: Any = dict(type='Accuracy', topk=(1,))
    if several:
        kept = {key: head[key] for key in ('in_channels', 'init_cfg') if key in head}
        model_of(cfg)['head'] = ConfigDict(type='MultiLabelLinearClsHead', **kept)
        metrics = [dict(type='AveragePrecision'), dict(type='MultiLabelMetric', thr=0.5)]
    for name in ('val_evaluator', 'test_evaluator'):
        if cfg.get(name) is not None:
            cfg[name] = copy.deepcopy(metrics)


def apply_weights(cfg: Config, options: Mapping[str, Any]) -> list[str]:
    """Let a training begin with ``weights``, in place; published ones also set how images are prepared.

    Raises:
        UserError: there are no such weights.
    """
    if not is_setting(cfg, 'weights', options):
        return []
    weights = SHORT_NAMES['weights'].check(cfg.pop('weights'))
    backbone = model_of(cfg).get('backbone') or {}
    if weights == NO_WEIGHTS:
        cfg.load_from = None
        drop_pretrained(cfg)
        return ['weights=none: the training begins with random weights']
    if weights in LIBRARIES and str(backbone.get('type')).split('.')[-1] in ('ResNet', 'VTResNet', 'ResNetV1c'):
        address = RESNETS[weights].format(backbone['depth'])
        backbone['init_cfg'] = ConfigDict(type='Pretrained', checkpoint=address)
        return [f'weights={weights}: the backbone begins with {address}']
    cfg.load_from = find_weights(cfg, weights)
    if prepare_as_published(cfg, cfg.load_from) is not None:
        for dataset in leaves((cfg.get('val_dataloader') or {}).get('dataset')):
            tested = next(iter(leaves(cfg.test_dataloader.dataset)))
            dataset['pipeline'] = copy.deepcopy(tested['pipeline'])
    return [f'weights={weights}: the training begins with {cfg.load_from}']


def name_of_data(path: Any) -> str:
    """Return the name of data for the folder of a run."""
    return Path(path).expanduser().resolve().stem.replace(' ', '-')
