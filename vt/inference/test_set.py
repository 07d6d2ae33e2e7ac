"""The test set of a config, and what of it a model is shown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, DefaultScope
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad
from torch.utils.data import Dataset

from vt.engine.checks.classes import labels_in
from vt.errors import UserError

IGNORED_LABEL = 255  # pixels that nobody labelled


def in_scope(cfg: Config) -> AbstractContextManager:
    """A context in which types without a prefix are those of a config's library."""
    return DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmpretrain')


def build_test_set(cfg: Config, **options) -> Dataset:
    """The test set of a config, or a UserError; of the options ``lazy_init=True`` leaves its files alone."""
    if not cfg.get('test_dataloader'):
        raise UserError('the config has no test_dataloader, whose images and pipeline are needed')
    if 'saved_in' in cfg:
        raise UserError('a saved model brings no test set: give images, or the config that it was trained by')
    with in_scope(cfg):
        return DATASETS.build(dict(cfg.test_dataloader.dataset, **options))


def spread_evenly(dataset: Dataset, number: int) -> list[int]:
    """Indices of so many samples, spread evenly over a data set; a UserError if the number is less than 1."""
    _require_images(number)
    return np.linspace(0, len(dataset) - 1, min(number, len(dataset))).round().astype(int).tolist()


def spread_over_classes(dataset: Dataset, number: int) -> list[int]:
    """Indices of the first image of each class in turn, then of the second ones, and so on; errors as above."""
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


def preprocessed(model: nn.Module, dataset: Dataset, indices: Iterable[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Images as the network sees them, one by one, since they may differ in size.

    Yields:
        The image, ``(1, 3, height, width)``, and where there are any its labels at this size, ``(1, height, width)``.
    """
    for index in indices:
        batch = pseudo_collate([dataset[index]])
        image_size = batch['inputs'][0].shape[-2:]
        data = model.data_preprocessor(batch, False)
        (sample,) = data['data_samples']
        labels = sample.gt_sem_seg.data if 'gt_sem_seg' in sample else None
        yield data['inputs'], None if labels is None else _fit_labels(labels, image_size, data['inputs'].shape[-2:])


def _fit_labels(labels: Tensor, image_size: Sequence[int], padded_size: Sequence[int]) -> Tensor:
    """Labels ``(1, height, width)`` of the original image for the resized one, padded at the right and the bottom."""
    labels = interpolate(labels[None].float(), tuple(image_size), mode='nearest-exact')[0].long()
    right, bottom = padded_size[1] - image_size[1], padded_size[0] - image_size[0]
    return pad(labels, (0, right, 0, bottom), value=IGNORED_LABEL)


@torch.no_grad()
def describe_image(model: nn.Module, dataset: Dataset | None, sample: dict) -> str:
    """What a sample is, and which of a data set's classes it is seen as; without a data set the former alone."""
    annotation = sample['data_samples']
    if dataset is None:
        return Path(annotation.img_path).name
    (result,) = model.test_step(pseudo_collate([sample]))
    what = name_class(dataset, annotation.gt_label) if 'gt_label' in annotation else Path(annotation.img_path).name
    return f'{what}, seen as {name_class(dataset, result.pred_label)}'


def name_class(dataset: Dataset, label: int | Tensor) -> str:
    """What a data set calls a class, or several; the number of one that it has no name for."""
    if dataset.metainfo.get('classes') is None:
        dataset.full_init()  # the classes of a folder of images are read from it
    names = dataset.metainfo.get('classes')
    labels = torch.as_tensor(label).reshape(-1).tolist()
    return ', '.join(str(int(each)) if names is None else names[int(each)] for each in labels) or 'nothing'
