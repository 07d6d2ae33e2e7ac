"""Figures of what a model predicts for its test images."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from mmengine.visualization import Visualizer
from torch import Tensor

from vt.checkpoints.files import replacing
from vt.datasets.bands import as_rgb
from vt.errors import UserError
from vt.registry import HOOKS

from .output_paths import distinct_paths


@HOOKS.register_module()
class FigureHook(Hook):
    """Write each test image of a classifier with its class, where it is known, and its prediction.

    Each figure keeps its image's path below the folder of the data set, so that equal names in two folders are two
    figures, which MMPretrain's hook doesn't do; and its colours, whatever order of channels they were read in. Of a
    video it is the frames of its first clip, side by side.

    Args:
        enable: draw; ``tools/test.py --show-dir`` turns it on.
        out_dir: directory of the figures; each has its image's folder and name, as PNG.
        interval: draw one in so many batches.
        **options: of the visualizer's method that draws.
    """

    def __init__(self, enable: bool = False, out_dir: str | None = 'figures', interval: int = 1, **options) -> None:
        self.enable = enable
        self.out_dir = Path(out_dir or 'figures')
        self.interval = interval
        self.options = options

    def before_test(self, runner: Runner) -> None:
        """Give each image of the test set the path of its figure, in all processes the same."""
        self.paths = output_paths_of(runner.test_dataloader.dataset) if self.enable else {}

    def after_test_iter(
        self, runner: Runner, batch_idx: int, data_batch: dict, outputs: Sequence[BaseDataElement]
    ) -> None:
        if not self.enable or not self.every_n_inner_iters(batch_idx, self.interval):
            return
        loader, is_bgr = runner.test_dataloader, reads_bgr(runner.cfg)
        for index, (image, sample) in enumerate(zip(data_batch['inputs'], outputs)):
            image_path = sample.get('img_path') or ''
            number = f'{batch_idx * loader.batch_size + index}.png'
            out_file = self.out_dir / self.paths.get(image_path, number)
            if out_file.exists() and Path(image_path).exists() and out_file.samefile(image_path):
                raise UserError(f'{image_path} would be written over: give another folder for the figures')
            pixels = visible(as_strip(image), is_bgr)
            with replacing(out_file) as part:
                drawn = part.with_name(f'{part.name}.png')  # libraries choose the format by the name
                self.draw(np.ascontiguousarray(pixels), sample, str(drawn))
                drawn.replace(part)

    def draw(self, image: np.ndarray, sample: BaseDataElement, out_file: str) -> None:
        """Write one figure of an image as the model was given it, RGB, ``(height, width, 3)`` uint8."""
        Visualizer.get_current_instance().visualize_cls(image, sample, out_file=out_file, **self.options)


@HOOKS.register_module()
class OverlayHook(FigureHook):
    """Write each test image with its labels (left, where there are any) and its prediction (right) laid over it.

    MMSegmentation's hook reads every image from its file again; this one draws on the image that the model was given,
    so that data sets made in memory have figures too.

    Args:
        enable, out_dir, interval: see :class:`FigureHook`.
        **options: ``with_labels=False`` leaves out the names of the classes on their segments.
    """

    def draw(self, image: np.ndarray, sample: BaseDataElement, out_file: str) -> None:
        """Write one figure; the image is enlarged to the prediction."""
        image = cv2.resize(image, sample.pred_sem_seg.shape[::-1])
        Visualizer.get_current_instance().add_datasample('prediction', image, sample, out_file=out_file, **self.options)


def as_strip(image: Tensor) -> Tensor:
    """An image as it is; of a clip ``(C, T, H, W)``, or the first of several, its frames side by side."""
    clip = image[0] if image.ndim == 5 else image
    return torch.cat(clip.unbind(1), dim=-1) if clip.ndim == 4 else clip


def visible(image: Tensor, is_bgr: bool) -> np.ndarray:
    """An image ``(C, height, width)`` as the network is given it, as RGB ``(height, width, 3)`` uint8."""
    is_colour = image.shape[0] == 3 and image.dtype == torch.uint8
    return as_rgb((image.flip(0) if is_bgr and is_colour else image).permute(1, 2, 0).cpu().numpy())


def output_paths_of(dataset: Any) -> dict[str, Path]:
    """Where below a folder of figures each image's figure belongs: as the image lies below its data set's folder.

    The whole path is kept where the image is not below the folder that the data set names. See
    :func:`vt.engine.output_paths.distinct_paths`.
    """
    if not hasattr(dataset, 'get_data_info'):
        return {}
    folder = getattr(dataset, 'data_prefix', {}).get('img_path') or os.sep
    infos = (dataset.get_data_info(index) for index in range(len(dataset)))
    paths = {info['img_path']: Path(info['img_path']) for info in infos if info.get('img_path')}
    below = {name: path.relative_to(folder) if path.is_relative_to(folder) else path for name, path in paths.items()}
    return distinct_paths(below)


def reads_bgr(cfg: Config) -> bool:
    """Whether a config's test images have OpenCV's order of channels, as all that are read from files have.

    Images in memory have it in segmentation, and where the preprocessor turns it.
    """
    model = cfg.get('model') or {}
    model = model.get('module') or model  # below test-time augmentation
    preprocessor = model.get('data_preprocessor') or cfg.get('data_preprocessor') or {}
    from_files = any(step in str(cfg.get('test_dataloader')) for step in ('LoadImageFromFile', 'LoadClips'))
    return from_files or 'decode_head' in model or bool(preprocessor.get('to_rgb'))
