"""Read a data set before a run, so that a wrong file is named before hours are spent on the rest."""

import os
from collections.abc import Iterable, Iterator
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

from vt.datasets.rows import RowsDataset
from vt.engine.config_files import leaves
from vt.errors import UserError
from vt.untrusted_text import check_class_names

from .annotations import find_annotation_problems
from .config import accepted_arguments
from .coverage import look_at_coverage, problems_of
from .labels import SplitLabels, compare_classes, find_gaps, infos_of, labels_of
from .overlap import find_shared
from .samples import Problem, Sample, SampleReader, labels_in

MOST_SAMPLES = 256  # of a split that are read before a run
WARNINGS = ('left out', 'no samples', 'few samples', 'order', 'duplicate')  # kinds that end no run


@dataclass
class Source:
    """A data set of a config, without wrappers.

    Attributes:
        split: ``'train'``, ``'val'`` or ``'test'``.
        name: its type.
        dataset: built, its annotations not loaded yet.
        reader: of its samples.
    """

    split: str
    name: str
    dataset: BaseDataset
    reader: SampleReader

    @property
    def has_files(self) -> bool:
        """Whether there is something to read; a data set can be made in memory."""
        return any((self.reader.load_image, self.reader.load_mask, self.reader.load_clips))

    @property
    def folder(self) -> str:
        """Of its images or videos, as far as it says; ``''`` where it doesn't."""
        return str(self.dataset.data_prefix.get('img_path') or '')

    def annotation_problems(self) -> list[Problem]:
        """What is wrong with its annotation file."""
        return find_annotation_problems(self.dataset, self.reader.num_classes)

    def load(self) -> BaseDataset:
        """The data set with its annotations; there must be something in them.

        Raises:
            UserError: there is nothing.
            OSError: a folder is not there, or can't be read.
        """
        if self.has_files and self.folder and '://' not in self.folder and not self.dataset.ann_file:
            os.scandir(self.folder).close()
            if not any(path.is_file() for path in Path(self.folder).rglob('*')):
                what = 'videos' if self.reader.load_clips else 'images'
                raise UserError(
                    f'the {self.split} split is empty: no {what} in {self.folder}; put them there, or set data_root, or'
                    f' {self.split}_dataloader.dataset.data_prefix in the config'
                )
        self.dataset.full_init()
        if not len(self.dataset):
            raise UserError(f'the {self.split} split is empty: look at {self.split}_dataloader.dataset in the config')
        return self.dataset

    def check_classes(self) -> None:
        """Look at the names of the classes, which its folders, annotations or features bring; these are loaded.

        Raises:
            UserError: they are none, or hold what a terminal would obey.
        """
        names = self.dataset.metainfo.get('classes')
        if names is not None:
            check_class_names(names, f'the list of classes of {self.name}')

    def read(self, indices: Iterable[int], threads: int) -> Iterator[Sample]:
        """What is seen of samples, in their order; the annotations are loaded."""
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(lambda index: self.reader(self.dataset.get_data_info(int(index))), indices)


def check_data(cfg: Config, splits: tuple[str, ...]) -> list[str]:
    """Check what can be checked in seconds: annotation files and folders, some images with their masks, some videos.

    Of each split at most ``MOST_SAMPLES`` are read, spread evenly. ``tools/check_dataset.py`` reads everything.

    Args:
        cfg: a config.
        splits: of ``'train'``, ``'val'`` and ``'test'``.

    Returns:
        Warnings: files that are left out, classes without a sample, samples that a split shares with the training.

    Raises:
        UserError: classes that differ between the splits, or from the config's; a training on one class alone; a split
            without images; a class whose name can't be shown; an image without its mask; a size that
            differs from the mask's; a label outside the classes; a file that can't be read; a line that doesn't parse.
            The line names the first file and counts the others.
        OSError: a folder is missing, or can't be read.
    """
    seen_splits: list[SplitLabels] = []
    training, warnings = [], []
    for split, _, source in find_sources(cfg, splits):
        if source is None:
            continue
        problems, total = source.annotation_problems(), 'lines'
        if not problems:
            number = len(source.load())
            source.check_classes()
            if source.reader.load_mask or source.reader.load_clips:
                indices = np.linspace(0, number - 1, min(MOST_SAMPLES, number)).astype(int)
                seen = source.read(indices, joblib.cpu_count())
                problems, total = [sample.problems[0] for sample in seen if sample.problems], f'{len(indices)} files'
        if problems:
            others = f' (and {len(problems) - 1} more of {total})' if len(problems) > 1 else ''
            raise UserError(f'{split} data: {problems[0]}{others}')
        infos, own = infos_of(source.dataset), labels_of(split, source.dataset)
        if outside := source.reader.labels_outside(own.counts):
            bad = next(source.reader(info) for info in infos if {*labels_in(info)} & outside)
            raise UserError(f'{split} data: {bad.problems[0]}')
        seen_splits.append(own)
        shared = find_shared(training, infos, split, own.source) if split != 'train' else []
        training += infos if split == 'train' else []
        for problem in (*find_gaps(own), *problems_of(look_at_coverage(source.dataset)), *shared):
            if problem.kind not in WARNINGS:
                raise UserError(f'{split} data: {problem}')
            warnings.append(f'{split} data: {problem}')
    for split, problem in compare_classes(seen_splits):
        raise UserError(f'{split} data: {problem}')
    return warnings


def find_sources(cfg: Config, splits: tuple[str, ...], whole: bool = False) -> Iterator[tuple[str, str, Source | None]]:
    """The data sets of a config below wrappers such as ``RepeatDataset``, each once, with split and type.

    There is no source where the type is none of OpenMMLab's, so that it lists no files. ``whole`` is of the reader.
    """
    seen = []
    model = cfg.get('model', {})
    head = model.get('head') or model.get('decode_head')
    num_classes = head.get('num_classes') if isinstance(head, dict) else None
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split in splits:
            for dataset_cfg in leaves((cfg.get(f'{split}_dataloader') or {}).get('dataset')):
                if dataset_cfg not in seen:
                    seen.append(dataset_cfg)
                    source = _make_source(split, dataset_cfg, registry, num_classes, whole)
                    yield split, str(dataset_cfg['type']), source


def _make_source(split: str, cfg: dict, registry: Any, num_classes: int | None, whole: bool) -> Source | None:
    built_by = cfg['type'] if callable(cfg['type']) else registry.get(cfg['type'])
    if not (isinstance(built_by, type) and issubclass(built_by, BaseDataset)):
        return None
    names, takes_any = accepted_arguments(built_by)
    pipeline = cfg.get('pipeline', [])
    if not pipeline and 'pipeline' in names:
        raise UserError(f'{split}_dataloader has a data set without a pipeline: set pipeline=[...] of {cfg["type"]}')
    root = cfg.get('data_root')
    is_folder = not cfg.get('download') and not issubclass(built_by, RowsDataset)
    if root and '://' not in root and is_folder:
        os.scandir(root).close()  # some data sets only assert it
    light = dict(lazy_init=True, serialize_data=False, pipeline=[])
    dataset = registry.build(cfg | {name: value for name, value in light.items() if takes_any or name in names})
    classes = dataset.metainfo.get('classes')
    steps = [_build_step(pipeline, step) for step in ('LoadImageFromFile', 'LoadAnnotations', 'LoadClips')]
    number, ignored = num_classes if classes is None else len(classes), getattr(dataset, 'ignore_index', 255)
    return Source(split, built_by.__name__, dataset, SampleReader(built_by.__name__, number, ignored, *steps, whole))


def _build_step(pipeline: Any, name: str) -> BaseTransform | None:
    """The step of a pipeline with a type's name; it may stand inside other steps, as in test-time augmentation."""
    for step in pipeline:
        if isinstance(step, dict) and str(step.get('type')).split('.')[-1] == name:
            return TRANSFORMS.build(step)
        inner = step.get('transforms', []) if isinstance(step, dict) else step
        found = _build_step(inner, name) if isinstance(inner, (list, tuple)) else None
        if found is not None:
            return found
    return None
