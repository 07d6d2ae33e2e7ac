"""Read a segmentation data set once before a run, so that a wrong file is named before hours are spent on the rest."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.registry import DATASETS
from mmseg.datasets import BaseSegDataset
from mmseg.datasets.transforms import LoadAnnotations
from PIL import Image, ImageOps
from rich.progress import track


def check_segmentation_data(cfg: Config, splits: tuple[str, ...]) -> None:
    """Check every image with its label mask, as the config's pipelines load it.

    Under torchrun each process checks its share. Data sets that are made in memory have no files to check.

    Args:
        cfg: a config; one without segmentation data passes.
        splits: of ``'train'``, ``'val'`` and ``'test'``.

    Raises:
        ValueError: a split without images; an image without its mask; a size that differs from the mask's; a label
            outside the classes; a file that can't be read. The line names the first file and counts the others.
        FileNotFoundError: a folder is missing.
    """
    checked = []
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split in splits:
            loader = cfg.get(f'{split}_dataloader') or {}
            for dataset_cfg in _leaves(loader.get('dataset', {})):
                dataset_class = registry.get(dataset_cfg['type'])
                is_segmentation = isinstance(dataset_class, type) and issubclass(dataset_class, BaseSegDataset)
                if is_segmentation and dataset_cfg not in checked:
                    _check_dataset(split, registry.build(dict(dataset_cfg, lazy_init=True, serialize_data=False)))
                    checked.append(dataset_cfg)


def _leaves(dataset_cfg: dict) -> Iterator[dict]:
    """The data sets below wrappers such as ``RepeatDataset`` and ``ConcatDataset``."""
    inner = dataset_cfg.get('datasets') or ([dataset_cfg['dataset']] if 'dataset' in dataset_cfg else [])
    for inner_cfg in inner:
        yield from _leaves(inner_cfg)
    if not inner and isinstance(dataset_cfg.get('type'), str):
        yield dataset_cfg


def _check_dataset(split: str, dataset: BaseSegDataset) -> None:
    files = dataset.load_data_list()
    folder = dataset.data_prefix.get('img_path')
    if not files and folder and not dataset.ann_file:
        raise ValueError(
            f'the {split} split is empty: no images *{dataset.img_suffix} in {folder}; '
            f'put them there, or set {split}_dataloader.dataset.data_prefix in the config'
        )
    dataset.full_init()
    if not len(dataset):
        raise ValueError(f'the {split} split is empty: look at {split}_dataloader.dataset in the config')
    load = next((step for step in dataset.pipeline.transforms if isinstance(step, LoadAnnotations)), None)
    if load is None or 'seg_map_path' not in files[0]:
        return
    rank, world_size = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
    infos = [dataset.get_data_info(index) for index in range(rank, len(dataset), world_size)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda info: _find_problem(info, load, dataset), infos)
        problems = [
            found for found in track(results, f'Checking {split} labels', len(infos), disable=rank > 0) if found
        ]
    if problems:
        others = f' (and {len(problems) - 1} more of {len(infos)} files)' if len(problems) > 1 else ''
        raise ValueError(f'{split} data: {problems[0]}{others}')


def _find_problem(info: dict, load: BaseTransform, dataset: BaseSegDataset) -> str | None:
    """What is wrong with one image and its mask."""
    image, mask = info['img_path'], info['seg_map_path']
    for path, what in ((image, 'image'), (mask, f'mask of {image}:')):
        if not Path(path).is_file():
            return f'there is no {what} {path}'
    try:
        with Image.open(image) as opened:
            # This decodes the image, and turns it as its camera says and the pipelines do.
            width, height = ImageOps.exif_transpose(opened).size
        with Image.open(mask) as opened:
            if opened.mode not in ('1', 'L', 'P'):
                return f'{mask} is of mode {opened.mode}: a mask holds one 8-bit class number a pixel'
        labels = load(info)['gt_seg_map']
    except (OSError, SyntaxError) as error:  # what Pillow raises on a damaged file
        return f'{mask} or {image} cannot be read: {error}'
    if labels.shape != (height, width):
        return f'{image} has {height}x{width} pixels, its mask {mask} has {labels.shape[0]}x{labels.shape[1]}'
    num_classes = len(dataset.metainfo['classes'])
    present = np.flatnonzero(np.bincount(labels.ravel(), minlength=256))
    outside = present[(present >= num_classes) & (present != dataset.ignore_index)]
    if outside.size:
        return (
            f'{mask} holds the label {outside[0]}, outside the {num_classes} classes of {type(dataset).__name__} '
            f'(0 to {num_classes - 1}, and {dataset.ignore_index} for pixels to ignore)'
        )
    return None
