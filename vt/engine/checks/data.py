"""Read a data set before a run, so that a wrong file is named before hours are spent on the rest."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, TRANSFORMS

from vt.datasets.bands import LoadBands
from vt.datasets.rows import RowsDataset
from vt.engine.config_files import leaves
from vt.errors import UserError
from vt.untrusted_text import check_class_names

from .annotations import find_annotation_problems
from .channels import image_channels
from .config import accepted_arguments
from .coverage import look_at_coverage, problems_of
from .labels import SplitLabels, compare_classes, find_gaps, infos_of, labels_of, merge_parts
from .mask_settings import check_palette, find_ignored, find_setting_problems
from .masks import explain_values, masks_of
from .overlap import find_shared
from .samples import Problem, Sample, SampleReader, labels_in

MOST_SAMPLES = 256  # of a split that are read before a run
# Kinds that end no run.
WARNINGS = ('left out', 'no samples', 'few samples', 'order', 'duplicate', 'subset', 'palette', 'turned')


@dataclass
class Source:
    """A data set of a config, without wrappers.

    Attributes:
        split: ``'train'``, ``'val'`` or ``'test'``.
        name: its type.
        dataset: built, its annotations not loaded yet.
        reader: of its samples.
        settings: its config.
    """

    split: str
    name: str
    dataset: BaseDataset
    reader: SampleReader
    settings: dict

    @property
    def has_files(self) -> bool:
        """Whether there is something to read; a data set can be made in memory."""
        return any((self.reader.load_image, self.reader.load_mask, self.reader.load_clips))

    def is_read(self, info: dict) -> bool:
        """Whether samples are read before a run, by what the data set says of one: masks, bands and videos."""
        loads = self.reader.load_mask or self.reader.load_clips or isinstance(self.reader.load_image, LoadBands)
        return bool(loads) or isinstance(info.get('gt_seg_map'), np.ndarray)

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
        classes = self.dataset.metainfo.get('classes')
        if classes is not None:  # folders, files and features name them only now
            self.reader = replace(self.reader, num_classes=len(classes))
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
        Warnings: files that are left out, classes without a sample or a pixel in what was read, samples that a split
        shares with the training, images that are turned without their masks.

    Raises:
        UserError: classes that differ between the splits, or from the config's; a training on one class alone; a split
            without images; a class whose name can't be shown; an image without its mask; a size that
            differs from the mask's; a label outside the classes; settings of masks that contradict each other; a file
            that can't be read; a line that doesn't parse. The line names the first file and counts the others.
        OSError: a folder is missing, or can't be read.
    """
    seen_splits: list[SplitLabels] = []
    training: list[dict] = []
    warnings: list[tuple[str, Problem]] = []
    for split, _, source in find_sources(cfg, splits):
        if source is None:
            continue
        _raise_first(split, source.annotation_problems(), 'lines')
        number = len(source.load())
        source.check_classes()
        own, infos = labels_of(split, source.dataset), infos_of(source.dataset)
        settings = [*find_setting_problems(source.dataset, source.reader.load_mask)]
        _raise_first(split, [problem for problem in settings if problem.kind not in WARNINGS])
        if source.is_read(infos[0]):
            indices = np.linspace(0, number - 1, min(MOST_SAMPLES, number)).astype(int)
            seen = [*source.read(indices, joblib.cpu_count())]
            own.masks = masks_of(source.dataset, source.reader.num_classes, seen)
            advice = explain_values(own.masks) if own.masks else None
            _raise_first(
                split, [sample.problems[0] for sample in seen if sample.problems], f'{len(seen)} files', advice
            )
        settings += find_ignored(cfg, split, source.settings, own.masks)
        if outside := source.reader.labels_outside(own.counts):
            bad = next(source.reader(info) for info in infos if {*labels_in(info)} & outside)
            _raise_first(split, bad.problems)
        seen_splits.append(own)
        shared = find_shared(training, infos, split, own.source) if split != 'train' else []
        training += infos if split == 'train' else []
        warnings += [
            (split, problem) for problem in (*settings, *problems_of(look_at_coverage(source.dataset)), *shared)
        ]
    found = [*warnings, *((own.split, problem) for own in merge_parts(seen_splits) for problem in find_gaps(own))]
    for split, problem in (*found, *compare_classes(seen_splits)):
        if problem.kind not in WARNINGS:
            _raise_first(split, [problem])
    return [f'{split} data: {problem}' for split, problem in found]


def _raise_first(split: str, problems: Sequence[Problem], total: str = '', advice: str | None = None) -> None:
    """Raise a UserError that says the first problem, how many more there are, and advice about masks."""
    if problems:
        others = f' (and {len(problems) - 1} more of {total})' if len(problems) > 1 else ''
        raise UserError(f'{split} data: {problems[0]}{others}' + (f'; the masks {advice}' if advice else ''))


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
                    source = _make_source(split, dataset_cfg, registry, num_classes, whole, image_channels(cfg))
                    yield split, str(dataset_cfg['type']), source


def _make_source(
    split: str, cfg: dict, registry: Any, num_classes: int | None, whole: bool, channels: int | None
) -> Source | None:
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
    check_palette(split, cfg, built_by)
    dataset = registry.build(cfg | {name: value for name, value in light.items() if takes_any or name in names})
    classes = dataset.metainfo.get('classes')
    steps = [_build_step(pipeline, step) for step in ('LoadImageFromFile', 'LoadAnnotations', 'LoadClips')]
    steps[0] = steps[0] or _build_step(pipeline, 'LoadBands')
    number, ignored = num_classes if classes is None else len(classes), getattr(dataset, 'ignore_index', 255)
    return Source(
        split,
        built_by.__name__,
        dataset,
        SampleReader(built_by.__name__, number, ignored, *steps, whole, channels),
        cfg,
    )


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
