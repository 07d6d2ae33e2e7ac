"""Write figures of the predictions for test images."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from mmengine.visualization import Visualizer
from torch import Tensor

from vt.datasets.bands import as_rgb
from vt.engine.config.parts import preparation_of
from vt.errors import UserError
from vt.files import atomic_write
from vt.paths import distinct_paths
from vt.registry import HOOKS


@HOOKS.register_module()
class FigureHook(Hook):
    """Write each test image with its label, if there is one, and its prediction.

    Figures of a segmentor are the image overlaid with its labels (left) and prediction (right). They show the input of
    the model, so data sets in memory have figures, too; MMSegmentation's hook reads the image from its file again.

    A figure has the path of its image relative to the folder of the data set, so that images of the same name in
    different folders do not overwrite each other. Colours are correct for RGB and BGR inputs. A video is drawn as the
    frames of its first clip, side by side.

    Args:
        enable: draw figures; ``vt test --show-dir`` turns it on.
        out_dir: folder of the figures, which are PNG files.
        interval: number of batches from one drawn batch to the next.
        **options: options of the visualizer's drawing method; for a segmentor ``with_labels=False`` omits class names.
    """

    def __init__(self, enable: bool = False, out_dir: str | None = 'figures', interval: int = 1, **options) -> None:
        self.enable = enable
        self.out_dir = Path(out_dir or 'figures')
        self.interval = interval
        self.options = options

    def before_test(self, runner: Runner) -> None:
        """Choose the path of each figure, the same in all processes; none of them is an image of the data set."""
        self.paths = output_paths_of(runner.test_dataloader.dataset) if self.enable else {}
        images = {os.path.realpath(path) for path in self.paths}
        for path in (self.out_dir / place for place in self.paths.values()):
            if os.path.realpath(path) in images:
                raise UserError(f'a figure would overwrite the image {path}: choose another folder for figures')

    def after_test_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if not self.enable or not self.every_n_inner_iters(batch_idx, self.interval):
            return
        loader, is_bgr = runner.test_dataloader, preparation_of(runner.cfg).is_bgr
        for index, (image, sample) in enumerate(zip(data_batch['inputs'], outputs)):
            image_path = sample.get('img_path') or ''
            number = f'{batch_idx * loader.batch_size + index}.png'
            out_file = self.out_dir / self.paths.get(image_path, number)
            pixels = visible(as_strip(image), is_bgr)
            with atomic_write(out_file) as part:
                self.draw(np.ascontiguousarray(pixels), sample, str(part))

    def draw(self, image: np.ndarray, sample: BaseDataElement, out_file: str) -> None:
        """Write one figure of an input of the model, RGB, ``(height, width, 3)``, uint8."""
        visualizer = Visualizer.get_current_instance()
        if 'pred_sem_seg' in sample:
            image = cv2.resize(image, sample.pred_sem_seg.shape[::-1])
            visualizer.add_datasample('prediction', image, sample, out_file=out_file, **self.options)
        else:
            visualizer.visualize_cls(image, sample, out_file=out_file, **self.options)


def as_strip(image: Tensor) -> Tensor:
    """Place the frames of a clip ``(C, T, H, W)``, or of the first of several, side by side; images are unchanged."""
    clip = image[0] if image.ndim == 5 else image
    return torch.cat(clip.unbind(1), dim=-1) if clip.ndim == 4 else clip


def visible(image: Tensor, is_bgr: bool) -> np.ndarray:
    """Convert an input of the network ``(C, height, width)`` to RGB ``(height, width, 3)``, uint8."""
    is_colour = image.shape[0] == 3 and image.dtype == torch.uint8
    return as_rgb((image.flip(0) if is_bgr and is_colour else image).permute(1, 2, 0).cpu().numpy())


def colour(image: np.ndarray, labels: np.ndarray, palette: Sequence | None) -> np.ndarray:
    """Lay the colours of labels ``(height, width)`` over an RGB image of this size; those without colour are white."""
    colours = np.full((2**16, 3), 255, np.uint8)
    colours[: len(palette or [])] = np.reshape(palette or [], (-1, 3))
    return (0.5 * image + 0.5 * colours[labels]).astype(np.uint8)


def output_paths_of(dataset: Any) -> dict[str, Path]:
    """Return the path of each image's figure, relative to the folder of figures.

    It is the path of the image relative to the folder of its data set, or the whole path if the image is elsewhere. See
    :func:`vt.paths.distinct_paths`.
    """
    if not hasattr(dataset, 'get_data_info'):
        return {}
    folder = getattr(dataset, 'data_prefix', {}).get('img_path') or os.sep
    infos = (dataset.get_data_info(index) for index in range(len(dataset)))
    paths = {info['img_path']: Path(info['img_path']) for info in infos if info.get('img_path')}
    below = {name: path.relative_to(folder) if path.is_relative_to(folder) else path for name, path in paths.items()}
    return distinct_paths(below)
