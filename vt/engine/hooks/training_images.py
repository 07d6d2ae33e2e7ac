"""``training.png``: the first images of a training as the network gets them, with their labels."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import Tensor, nn

from vt.checkpoints.weights import unwrap
from vt.engine.config.parts import preparation_of
from vt.registry import HOOKS
from vt.untrusted_text import printable

from .curves import Row, attempt, draw_rates, save_figure
from .visualization import as_strip, colour, visible

IMAGES = 'training.png'
MOST, LABELS = 16, 3  # images, and labels of each
SIDE = 3.0  # of an image in inches
NARROW, WIDE = 42, 120  # characters of a line above an image, and above the frames of a video


@HOOKS.register_module()
class TrainingImagesHook(Hook):
    """Write the images of the first batch of a new run to ``training.png``: augmented, with labels, as in training.

    With a dry run it is the batch of the dry run, whose samples are spread over the data set.
    """

    def before_train(self, runner: Runner) -> None:
        preprocessor = getattr(unwrap(runner.model), 'data_preprocessor', None)
        if runner.iter or preprocessor is None or not is_main_process():
            return
        is_bgr, names = preparation_of(runner.cfg).takes_bgr, getattr(runner.train_dataloader.dataset, 'metainfo', {})

        def draw(module: nn.Module, args: tuple, data: Any) -> None:
            handle.remove()
            attempt(runner, IMAGES, lambda: draw_inputs(data, module, is_bgr, names, Path(runner.work_dir, IMAGES)))

        handle = preprocessor.register_forward_hook(draw)


def draw_inputs(
    data: dict,
    preprocessor: nn.Module,
    is_bgr: bool,
    names: dict,
    path: Path,
    most: int = MOST,
    rates: Sequence[Row] = (),
) -> None:
    """Draw a batch of a network's inputs, of other kinds of data nothing.

    Args:
        data: what the preprocessor returns: ``inputs`` and ``data_samples``.
        preprocessor: the preprocessor, whose normalisation is reversed.
        is_bgr: whether the network takes BGR.
        names: ``classes`` and ``palette`` of the data set, if it has them.
        path: file of the figure.
        most: number of images; equal ones are drawn once.
        rates: learning rates, ``lr``, by epoch or iteration, which are drawn below the images.
    """
    inputs = data.get('inputs') if isinstance(data, dict) else None
    if not isinstance(inputs, Tensor) or inputs.ndim < 4:
        return
    shown = [k for k in range(len(inputs)) if not any(inputs[k].equal(inputs[j]) for j in range(k))][:most]
    rows = len(shown) if inputs.ndim > 4 else -(-len(shown) // 4)  # a video is a row of frames
    columns = 1 if inputs.ndim > 4 else min(len(shown), 4)
    width = 4 * SIDE if inputs.ndim > 4 else columns * SIDE
    height = rows * (SIDE if inputs.ndim == 4 else 1.2)
    figure = Figure(figsize=(width, height + (SIDE if rates else 0)), layout='constrained')
    parts: Any = figure.subfigures(2, 1, height_ratios=(height, SIDE)) if rates else [figure]
    if rates:
        draw_rates(parts[1].subplots(), rates)
    for cell in (cells := parts[0].subplots(rows, columns, squeeze=False)).flat:
        cell.axis('off')
    for cell, index in zip(cells.flat, shown):
        image = visible(as_strip(_restore(inputs[index].detach(), preprocessor)), is_bgr)
        sample = (data.get('data_samples') or [None] * len(inputs))[index]
        image, title = _label(image, sample, names)
        cell.imshow(image)
        cell.set_title(fill(title.replace('$', r'\$'), WIDE if inputs.ndim > 4 else NARROW), fontsize='small')
    save_figure(figure, path)


def _restore(image: Tensor, preprocessor: nn.Module) -> Tensor:
    """Return an input ``(C, ...)``, or views of it ``(V, C, ...)``, before its normalisation, 8-bit images as uint8."""
    image, mean, std = image.float(), getattr(preprocessor, 'mean', None), getattr(preprocessor, 'std', None)
    largest = float(image.max())
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        image, largest = image * std + mean, float(mean.max())
    is_eight_bit = image.shape[-3 if image.ndim == 3 else -4] == 3 and 1 < largest < 256
    return image.round().clamp(0, 255).to(torch.uint8) if is_eight_bit else image


def _label(image: np.ndarray, sample: Any, names: dict) -> tuple[np.ndarray, str]:
    """Return the image with the colours of its mask, and the names of its labels."""
    classes = names.get('classes') or ()

    def name(label: int) -> str:
        return printable(str(classes[label]), 32) if 0 <= label < len(classes) else str(label)

    if sample is not None and 'gt_sem_seg' in sample:
        mask = sample.gt_sem_seg.data.squeeze(0).cpu().numpy().astype(np.uint16)
        found = np.unique(mask)
        title = [name(label) for label in found.tolist() if label < len(classes)]
        image = colour(image, mask, names.get('palette'))
    elif sample is not None and 'gt_score' in sample and ((scores := sample.gt_score) > 0).any():
        is_mixed = bool(((scores > 0) & (scores < 1)).any())
        best = scores.argsort(descending=True)[: int((scores > 0).sum())].tolist()
        title = [name(k) + (f' {scores[k]:.2f}' if is_mixed else '') for k in best]
    elif sample is not None and 'gt_label' in sample:
        title = [name(label) for label in sample.gt_label.reshape(-1).tolist()]
    else:
        title = []
    return image, ', '.join(title[:LABELS]) + (f' +{len(title) - LABELS}' if len(title) > LABELS else '')
