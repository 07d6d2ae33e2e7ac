"""The test set of a config, and the training set as one: building, choosing samples, class names."""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from torch import Tensor, nn
from torch.utils.data import Dataset

from vt.engine.checks.classes import labels_in
from vt.engine.config_parts import leaves, preparation_of
from vt.errors import UserError
from vt.registry import build

REPEATING = ('RepeatDataset', 'ClassBalancedDataset')


def build_test_set(cfg: Config, *, is_lazy: bool = False, **options) -> Dataset:
    """Build the test set of a config, or raise a UserError; with ``is_lazy`` without wrappers and files."""
    if not cfg.get('test_dataloader'):
        raise UserError('the config has no test_dataloader, which is needed for its images and pipeline')
    if 'saved_in' in cfg:
        raise UserError('a saved model has no test set: give images, or the config of its training')
    dataset = cfg.test_dataloader.dataset
    dataset = dict(leaves(dataset)[0], lazy_init=True) if is_lazy else dict(dataset, **options)
    return build(DATASETS, dataset, cfg.get('default_scope'))


def build_plain_training_set(cfg: Config) -> Dataset:
    """Build the training set of a config without repetition and augmentation, with the test pipeline."""
    dataset, steps = deepcopy((cfg.get('train_dataloader') or {}).get('dataset')), preparation_of(cfg).steps
    if not (dataset and steps):
        raise UserError('training images need train_dataloader and test_dataloader, and the config lacks one of them')
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
def describe_image(model: nn.Module, dataset: Dataset | None, sample: dict) -> str:
    """Return the label or file name of a sample and its prediction; without a data set only the file name."""
    annotation = sample['data_samples']
    if dataset is None:
        return Path(annotation.img_path).name
    (result,) = model.test_step(pseudo_collate([sample]))
    what = name_class(dataset, annotation.gt_label) if 'gt_label' in annotation else Path(annotation.img_path).name
    own = (getattr(model, 'dataset_meta', None) or {}).get('classes')
    return f'{what}, seen as {name_class(dataset, result.pred_label, own)}'


def name_class(dataset: Dataset, label: int | Tensor, names: Sequence[str] | None = None) -> str:
    """Return the name of one or several classes, by default of a data set, or the number of a class without a name."""
    if names is None and dataset.metainfo.get('classes') is None:
        dataset.full_init()  # the classes of a folder of images are read from it
    names = names or dataset.metainfo.get('classes')
    labels = torch.as_tensor(label).reshape(-1).tolist()
    return ', '.join(str(int(each)) if names is None else names[int(each)] for each in labels) or 'nothing'
