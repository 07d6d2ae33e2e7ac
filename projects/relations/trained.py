"""What a command measures: a model, trained or not, and images of its test set."""

import argparse
from collections.abc import Iterable, Iterator, Sequence

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad
from torch.utils.data import Dataset

from vt.apis import get_model
from vt.engine.config.steps import read_config
from vt.engine.hooks.num_classes import IGNORED_LABEL
from vt.engine.run.launch import draw_weights
from vt.inference.test_set import build_test_set, spread_evenly
from vt.paths import check_output

SEED = 0  # of random weights, without a checkpoint


def prepare(args: argparse.Namespace) -> tuple[nn.Module, Dataset, list[int], dict]:
    """Check the output; return the model, the test set, indices of images, and the origin for the JSON file."""
    check_output(args.out, args.config, args.checkpoint)
    model = build(read_config(args.config, args.cfg_options), args.checkpoint)
    dataset = build_test_set(model.cfg)
    indices = spread_evenly(dataset, args.images)
    return model, dataset, indices, dict(config=args.config, checkpoint=args.checkpoint, images=len(indices))


def build(cfg: Config, checkpoint: str | None) -> nn.Module:
    """Build a model on the GPU, if there is one; without a checkpoint with reproducible random weights."""
    torch.manual_seed(SEED)
    model = get_model(cfg, checkpoint)
    if not checkpoint:
        draw_weights(model)
    return model.to('cuda' if torch.cuda.is_available() else 'cpu')


def preprocessed(model: nn.Module, dataset: Dataset, indices: Iterable[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield preprocessed images, one by one, since their sizes may differ.

    Each is ``(1, 3, height, width)``, with its label map at this size, ``(1, height, width)``, if there is one.
    """
    for index in indices:
        batch = pseudo_collate([dataset[index]])
        image_size = batch['inputs'][0].shape[-2:]
        data = model.data_preprocessor(batch, False)
        (sample,) = data['data_samples']
        labels = sample.gt_sem_seg.data if 'gt_sem_seg' in sample else None
        yield data['inputs'], None if labels is None else _fit_labels(labels, image_size, data['inputs'].shape[-2:])


def _fit_labels(labels: Tensor, image_size: Sequence[int], padded_size: Sequence[int]) -> Tensor:
    """Resize labels ``(1, height, width)`` to the size of the image, and pad them at the right and the bottom."""
    labels = interpolate(labels[None].float(), tuple(image_size), mode='nearest-exact')[0].long()
    right, bottom = padded_size[1] - image_size[1], padded_size[0] - image_size[0]
    return pad(labels, (0, right, 0, bottom), value=IGNORED_LABEL)
