"""A trained model and the images of its test set that it is shown; a user's own: :mod:`vt.analysis.pictures`."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.logging import MMLogger
from mmengine.registry import DATASETS
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad
from torch.utils.data import Dataset

from vt.checkpoints.loading import load_weights
from vt.engine.launch import build_model
from vt.errors import UserError

from .token_measures import IGNORED_LABEL

SEED = 0  # of weights that no checkpoint sets


def prepare_model(cfg: Config, checkpoint: str | None) -> nn.Module:
    """The model of a config for evaluation, on the GPU where there is one; without a checkpoint always the same one.

    Raises:
        UserError: the checkpoint is not the model's.
    """
    torch.manual_seed(SEED)
    model = build_model(cfg)
    if checkpoint:
        load_weights(model, checkpoint)
    else:
        draw_weights(model)
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    model.eval()
    return model


def draw_weights(model: nn.Module) -> None:
    """Draw a model's weights as its config says, without MMEngine's line for each tensor."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        model.init_weights()
    finally:
        logger.setLevel(level)


def build_test_set(cfg: Config, **options) -> Dataset:
    """The test set of a config; the options go beside its own: ``lazy_init=True`` leaves its files alone.

    Raises:
        UserError: the config has none.
    """
    if not cfg.get('test_dataloader'):
        raise UserError('the config has no test_dataloader, whose images and pipeline are needed')
    if 'saved_in' in cfg:
        raise UserError('a saved model brings no test set: give pictures, or the config that it was trained by')
    return DATASETS.build(dict(cfg.test_dataloader.dataset, **options))


def spread_evenly(dataset: Dataset, number: int) -> list[int]:
    """Indices of so many samples, spread evenly over a data set.

    Raises:
        UserError: the number is less than 1.
    """
    _require_images(number)
    return np.linspace(0, len(dataset) - 1, min(number, len(dataset))).round().astype(int).tolist()


def spread_over_classes(dataset: Dataset, number: int) -> list[int]:
    """Indices of the first image of each class in turn, then of the second ones, and so on.

    Raises:
        UserError: the number is less than 1.
    """
    _require_images(number)
    if not hasattr(dataset, 'get_gt_labels'):  # segmentation
        return list(range(min(number, len(dataset))))
    labels = dataset.get_gt_labels().tolist()
    seen: dict[int, int] = {}
    order = []
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
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
    """What a data set calls a class; the number of one that it has no name for."""
    if dataset.metainfo.get('classes') is None:
        dataset.full_init()  # the classes of a folder of images are read from it
    names = dataset.metainfo.get('classes')
    return str(int(label)) if names is None else names[int(label)]
