"""The test set of a config, and the training set as one: building, choosing samples, class names."""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from torch import Tensor
from torch.utils.data import Dataset

from vt.engine.config.parts import is_segmentation, leaves, preparation_of
from vt.engine.hooks.num_classes import labels_in
from vt.errors import UserError
from vt.registry import build

REPEATING = ('RepeatDataset', 'ClassBalancedDataset')


def build_test_set(cfg: Config, **options) -> Dataset:
    """Build the test set of a config, or raise a UserError."""
    if not cfg.get('test_dataloader'):
        raise UserError('test images require test_dataloader in the config')
    if 'saved_in' in cfg:
        raise UserError('a saved model has no test set: give images, or use the config of its training')
    return build(DATASETS, dict(cfg.test_dataloader.dataset, **options), cfg.get('default_scope'))


def build_plain_training_set(cfg: Config) -> Dataset:
    """Build the training set of a config without repetition and augmentation, with the test pipeline."""
    dataset, steps = deepcopy((cfg.get('train_dataloader') or {}).get('dataset')), preparation_of(cfg).steps
    if not (dataset and steps):
        raise UserError('training images require train_dataloader and test_dataloader in the config')
    while str(dataset.get('type')).split('.')[-1] in REPEATING:
        dataset = dataset['dataset']
    for leaf in leaves(dataset):
        leaf['pipeline'] = [*steps]
    return build(DATASETS, dataset, cfg.get('default_scope'))


def spread_evenly(dataset: Dataset, number: int) -> list[int]:
    """Return the indices of this number of samples, spread evenly; raise a UserError if it is less than 1."""
    _require_images(number)
    return np.linspace(0, len(dataset) - 1, min(number, len(dataset))).round().astype(int).tolist()


def spread_over_classes(dataset: Dataset, number: int) -> list[int]:
    """Return the indices of the first images of all classes, then of the second, and so on; errors as above."""
    _require_images(number)
    if not hasattr(dataset, 'get_gt_labels'):  # segmentation
        return list(range(min(number, len(dataset))))
    seen, order = Counter(), []
    for index in range(len(dataset)):
        label = tuple(labels_in(dataset.get_data_info(index)))
        seen[label] += 1
        order.append((seen[label], label, index))
    return [index for _, _, index in sorted(order)[:number]]


def _require_images(number: int) -> None:
    if number < 1:
        raise UserError(f'--images {number} must be at least 1')


@torch.no_grad()
def describe_image(model: Any, sample: dict, names: Sequence[str] | None) -> str:
    """Return the label, by the names of classes, or file name of a sample, and its prediction, but of a segmentor's."""
    annotation = sample['data_samples']
    if is_segmentation(model.cfg):
        return Path(annotation.img_path).name
    (result,) = model.test_step(pseudo_collate([sample]))
    what = name_class(annotation.gt_label, names) if 'gt_label' in annotation else Path(annotation.img_path).name
    return f'{what}, seen as {name_class(result.pred_label, model.dataset_meta.get("classes") or names)}'


def name_class(label: int | Tensor, names: Sequence[str] | None) -> str:
    """Return the name of one or several classes, or the number of a class without a name."""
    labels = torch.as_tensor(label).reshape(-1).tolist()
    return ', '.join(names[int(each)] if names else str(int(each)) for each in labels) or 'nothing'
