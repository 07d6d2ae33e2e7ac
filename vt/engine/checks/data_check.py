"""Read a data set before a run, so that a wrong file is named before hours are spent on the rest."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, TRANSFORMS

from vt.engine.config_files import leaves
from vt.errors import UserError

from .annotations import find_annotation_problems
from .config_walk import accepted_arguments
from .problems import Problem, summarise
from .samples import SampleCheck

MOST_SAMPLES = 256  # of a split that are read before a run


@dataclass
class Source:
    """A data set of a config, without wrappers.

    Attributes:
        split: ``'train'``, ``'val'`` or ``'test'``.
        dataset: built, its annotations not loaded yet.
        check: of its samples.
    """

    split: str
    dataset: BaseDataset
    check: SampleCheck

    @property
    def has_files(self) -> bool:
        """Whether there is something to read; a data set can be made in memory."""
        return self.check.load_image is not None or self.check.load_mask is not None

    def annotation_problems(self) -> list[Problem]:
        """What is wrong with its annotation file."""
        return find_annotation_problems(self.dataset, self.check.num_classes)

    def require_files(self) -> None:
        """The folder of the images must be there and hold something.

        Raises:
            OSError: it is not there, or can't be read.
            UserError: it is empty.
        """
        folder = str(self.dataset.data_prefix.get('img_path') or '')
        if not folder or '://' in folder or self.dataset.ann_file or self.check.load_image is None:
            return
        os.scandir(folder).close()
        if not any(path.is_file() for path in Path(folder).rglob('*')):
            raise UserError(
                f'the {self.split} split is empty: no images in {folder}; put them there, or set data_root, or '
                f'{self.split}_dataloader.dataset.data_prefix in the config'
            )

    def require_samples(self) -> None:
        """Load the annotations; there must be something in them.

        Raises:
            UserError: there are none.
            FileNotFoundError: a folder is missing.
        """
        self.dataset.full_init()
        if not len(self.dataset):
            suffix = getattr(self.dataset, 'img_suffix', None)
            hint = f' (images *{suffix} in {self.dataset.data_prefix.get("img_path")})' if suffix else ''
            raise UserError(
                f'the {self.split} split is empty: look at {self.split}_dataloader.dataset in the config{hint}'
            )

    def samples(self) -> list[dict]:
        """What the data set says about each of its samples; errors as of :meth:`require_samples`."""
        self.require_samples()
        return [self.dataset.get_data_info(index) for index in range(len(self.dataset))]


def check_data(cfg: Config, splits: tuple[str, ...]) -> None:
    """Check what can be checked in seconds: annotation files, and the images and masks of some segmentation data.

    Of each split at most ``MOST_SAMPLES`` are read, spread evenly. ``tools/check_dataset.py`` reads everything.

    Args:
        cfg: a config.
        splits: of ``'train'``, ``'val'`` and ``'test'``.

    Raises:
        UserError: a split without images; an image without its mask; a size that differs from the mask's; a label
            outside the classes; a file that can't be read; a line that doesn't parse. The line names the first file
            and counts the others.
        OSError: a folder is missing, or can't be read.
    """
    for source in find_sources(cfg, splits):
        problems = source.annotation_problems()
        if problems:
            raise UserError(f'{source.split} data: {summarise(problems, len(problems), "problems")}')
        source.require_files()
        if source.check.load_mask is not None:
            _check_masks(source)
        elif not source.has_files:
            source.require_samples()


def _check_masks(source: Source) -> None:
    source.require_samples()
    indices = np.linspace(0, len(source.dataset) - 1, min(MOST_SAMPLES, len(source.dataset))).astype(int)
    infos = [source.dataset.get_data_info(int(index)) for index in indices]
    if 'seg_map_path' not in infos[0]:
        return
    with ThreadPoolExecutor(joblib.cpu_count()) as pool:
        problems = [problem for sample in pool.map(source.check, infos) for problem in sample.problems[:1]]
    if problems:
        raise UserError(f'{source.split} data: {summarise(problems, len(infos))}')


def find_sources(cfg: Config, splits: tuple[str, ...], with_digest: bool = False) -> Iterator[Source]:
    """The data sets of a config below wrappers such as ``RepeatDataset``, each once."""
    seen = []
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split, dataset_cfg in _each_leaf(cfg, splits):
            if _is_openmmlab(dataset_cfg, registry) and dataset_cfg not in seen:
                seen.append(dataset_cfg)
                yield _make_source(split, dataset_cfg, registry, _head_classes(cfg), with_digest)


def find_strangers(cfg: Config, splits: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Split and type of the data sets that :func:`find_sources` leaves out: their files can't be listed."""
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split, dataset_cfg in _each_leaf(cfg, splits):
            if not _is_openmmlab(dataset_cfg, registry):
                yield split, str(dataset_cfg['type'])


def _each_leaf(cfg: Config, splits: tuple[str, ...]) -> Iterator[tuple[str, dict]]:
    for split in splits:
        loader = cfg.get(f'{split}_dataloader') or {}
        for dataset_cfg in leaves(loader.get('dataset')):
            yield split, dataset_cfg


def _is_openmmlab(dataset_cfg: dict, registry: Any) -> bool:
    built_by = dataset_cfg['type']
    built_by = registry.get(built_by) if isinstance(built_by, str) else built_by
    return isinstance(built_by, type) and issubclass(built_by, BaseDataset)


def _make_source(split: str, cfg: dict, registry: Any, num_classes: int | None, with_digest: bool) -> Source:
    built_by = cfg['type'] if callable(cfg['type']) else registry.get(cfg['type'])
    names, takes_any = accepted_arguments(built_by)
    pipeline = cfg.get('pipeline', [])
    if not pipeline and 'pipeline' in names:
        raise UserError(f'{split}_dataloader has a data set without a pipeline: set pipeline=[...] of {cfg["type"]}')
    root = cfg.get('data_root')
    if root and '://' not in root and not cfg.get('download'):
        os.scandir(root).close()  # some data sets only assert it
    load_image, load_mask = (_build_step(pipeline, name) for name in ('LoadImageFromFile', 'LoadAnnotations'))
    light = dict(lazy_init=True, serialize_data=False, pipeline=[])
    dataset = registry.build(cfg | {name: value for name, value in light.items() if takes_any or name in names})
    classes = dataset.metainfo.get('classes')
    check = SampleCheck(
        load_image,
        load_mask,
        num_classes if classes is None else len(classes),
        getattr(dataset, 'ignore_index', 255),
        type(dataset).__name__,
        with_digest,
    )
    return Source(split, dataset, check)


def _build_step(pipeline: Any, name: str) -> BaseTransform | None:
    """The step of a pipeline with a type's name; it may stand inside other steps, as in test-time augmentation."""
    for step in pipeline:
        if isinstance(step, (list, tuple)):
            found = _build_step(step, name)
        elif isinstance(step, dict) and str(step.get('type')).split('.')[-1] == name:
            found = TRANSFORMS.build(step)
        else:
            found = _build_step(step.get('transforms', []), name) if isinstance(step, dict) else None
        if found is not None:
            return found
    return None


def _head_classes(cfg: Config) -> int | None:
    """How many classes a classifier's head tells apart."""
    head = cfg.get('model', {}).get('head')
    num_classes = head.get('num_classes') if isinstance(head, dict) else None
    return num_classes if type(num_classes) is int else None
