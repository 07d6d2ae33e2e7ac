"""Check the data sets of a config before a run, and collect what ``tools/check_dataset.py`` reports."""

import math
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, TRANSFORMS
from rich.progress import track

from vt.datasets.bands import LoadBands
from vt.datasets.hugging_face import RowSamples
from vt.engine.checks.channels import image_channels
from vt.engine.checks.classes import labels_in
from vt.engine.checks.config import accepted_arguments
from vt.engine.config_parts import leaves, steps_in
from vt.engine.errors import naming_part
from vt.errors import UserError
from vt.folders import find_similar
from vt.untrusted_text import check_class_names

from .coverage import Coverage, look_at_coverage, problems_of
from .labels import SplitLabels, find_label_problems, infos_of, labels_of
from .masks import explain_values, masks_of
from .overlap import find_contradictions, find_shared, may_share
from .samples import Problem, Sample, SampleReader

MOST_LISTED = 20_000  # files of a list that are looked up before a run
MOST_SAMPLES = 256  # samples of a split that are read before a run
# Kinds of problems that only warn.
WARNINGS = ('left out', 'no samples', 'order', 'duplicate', 'turned', 'frames', 'depth', 'same')


@dataclass
class Source:
    """A data set of a config, without wrappers, and the results of its checks."""

    split: str  # 'train', 'val' or 'test'
    name: str  # its type
    dataset: BaseDataset | None = None  # None for a type that is not OpenMMLab's
    reader: SampleReader | None = None
    samples: list[Sample] = field(default_factory=list)  # samples that were read
    labels: SplitLabels | None = None  # None if the annotations are not loaded
    coverage: list[Coverage] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def has_files(self) -> bool:
        """Whether samples are read from files; data sets may be in memory."""
        return any((self.reader.load_image, self.reader.load_mask, self.reader.load_clips))

    @property
    def folder(self) -> str:
        """Folder of images or videos; ``''`` if the data set names none."""
        return str(self.dataset.data_prefix.get('img_path') or '')

    def look(self, threads: int, most: int | None = None) -> None:
        """Load the annotations, read samples and collect the problems of this data set.

        Args:
            threads: number of threads that read.
            most: read at most this number of samples, spread evenly, and only samples with masks or bands and videos;
                None reads all.

        Raises:
            UserError: the data set cannot be loaded, or there are no samples.
            OSError: a folder does not exist or cannot be read.
        """
        self._load()
        dataset, reader, infos = self.dataset, self.reader, infos_of(self.dataset)
        loads = reader.load_mask or reader.load_clips or isinstance(reader.load_image, LoadBands)
        if most is None or loads or isinstance(infos[0].get('gt_seg_map'), np.ndarray):
            indices = np.linspace(0, len(infos) - 1, min(most or len(infos), len(infos))).astype(int)
            with ThreadPoolExecutor(threads) as pool:
                seen = pool.map(lambda index: reader(dataset.get_data_info(int(index))), indices)
                silent = most is not None or not self.has_files
                self.samples += track(seen, f'Reading {self.split}', len(indices), disable=silent)
        elif self.has_files and dataset.ann_file and not getattr(reader.load_image, 'backend_args', None):
            self.problems += self._find_missing()
        self.problems += [problem for sample in self.samples for problem in sample.problems]
        if isinstance(infos, RowSamples) and max(infos.count_labels(), default=0) < (reader.num_classes or math.inf):
            infos = ()  # of a million samples most know their labels at once
        times = Counter(str(info.get('img_path')) for info in infos if info.get('img_path'))
        twice = [info for info in infos if times[str(info.get('img_path'))] > 1]
        self.problems += find_contradictions(
            self.samples or [Sample(str(info['img_path']), labels_in(info)) for info in twice]
        )
        for info in infos:
            self.problems += reader.find_labels_outside(str(info.get('img_path')), labels_in(info))
        masks = masks_of(dataset, reader.num_classes, self.samples)
        self.labels = labels_of(self.split, dataset, masks)
        if masks and (advice := explain_values(masks)):
            self.problems.append(Problem('values', masks.source, f'has masks that {advice}'))
        self.coverage = look_at_coverage(dataset)
        self.problems += problems_of(self.coverage)

    def _load(self) -> None:
        if self.has_files and self.folder and '://' not in self.folder and not self.dataset.ann_file:
            require_split(Path(self.folder))
        with naming_part(f'loading {self.split}_dataloader.dataset ({self.name})'):
            self.dataset.full_init()
        if not len(self.dataset):
            raise UserError(f'the {self.split} split is empty: correct {self.split}_dataloader.dataset in the config')
        classes = self.dataset.metainfo.get('classes')
        if classes is not None:  # class names of folders, files and features are known only now
            self.reader = replace(self.reader, num_classes=len(classes))
            try:
                check_class_names(classes, f'the list of classes of {self.name}')
            except UserError as error:
                where = self.folder or str(self.dataset.data_root or self.name)
                self.problems.append(Problem('classes', where, f'has classes that cannot be used: {error}'))

    def _find_missing(self) -> Iterator[Problem]:
        """Yield a problem for each listed file that does not exist; of long lists a part is looked up."""
        paths = [path for info in infos_of(self.dataset) if isinstance(path := info.get('img_path'), str)]
        for path in paths[:: math.ceil(len(paths) / MOST_LISTED)]:
            if '://' not in path and not os.path.isfile(path):
                yield Problem('missing', path, f'does not exist{find_similar(path)}')


def require_split(folder: Path) -> None:
    """Raise a UserError that says how to split, if the folder of a split is missing beside other folders."""
    there = not folder.is_dir() and folder.parent.is_dir() and sorted(path.name for path in folder.parent.glob('*/'))
    if there:
        raise UserError(
            f'there is no {folder}, but {folder.parent} has the folders {", ".join(there[:3])}: move images of each '
            f'class to {folder.parent}/train/CLASS, and the others, such as every fifth, to {folder.parent}/val/CLASS'
        )


def check_data(cfg: Config, splits: tuple[str, ...]) -> list[str]:
    """Check splits of a config in seconds: labels, folders, some images with their masks and some videos.

    At most ``MOST_SAMPLES`` samples of a split are read, spread evenly; ``tools/check_dataset.py`` reads all.

    Returns:
        A line for each problem of a kind in ``WARNINGS``.

    Raises:
        UserError: there is another problem; the message names the first file and counts the others.
        OSError: a folder does not exist or cannot be read.
    """
    sources = [source for source in find_sources(cfg, splits) if source.dataset is not None]
    for source in sources:
        source.look(joblib.cpu_count(), MOST_SAMPLES)
        _raise_first(source)
    training = [infos_of(source.dataset) for source in sources if source.split == 'train']
    for source in sources:
        if source.split != 'train':
            infos = infos_of(source.dataset)
            of_train = [*chain(*(own for own in training if may_share(own, infos)))]
            source.problems += find_shared(of_train, infos, source.split, source.labels.source)
    found = [(source.split, problem) for source in sources for problem in source.problems]
    found += [*find_label_problems([source.labels for source in sources]), *find_same(cfg, splits)]
    for split, problem in found:
        if problem.kind not in WARNINGS:
            raise UserError(f'{split} data: {problem}')
    return [f'{split} data: {problem}' for split, problem in found]


def _raise_first(source: Source) -> None:
    """Raise ``UserError`` with the first problem, the number of other ones, and advice about masks."""
    first, *more = [problem for problem in source.problems if problem.kind not in WARNINGS] or [None]
    if first is not None:
        advice = [f'; {problem}' for problem in more if problem.kind == 'values']
        number = f' (and {len(more) - len(advice)} more)' if len(more) > len(advice) else ''
        raise UserError(f'{source.split} data: {first}{number}{"".join(advice)}')


def find_sources(cfg: Config, splits: tuple[str, ...], whole: bool = False) -> Iterator[Source]:
    """Yield the data sets of splits inside wrappers such as ``RepeatDataset``, each once; ``whole``: of the reader."""
    seen = []
    model = cfg.get('model', {})
    head = model.get('head') or model.get('decode_head')
    num_classes = head.get('num_classes') if isinstance(head, dict) else None
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split in splits:
            data = (cfg.get(f'{split}_dataloader') or {}).get('dataset') or {}
            if 'train' in splits and str(data.get('type')).endswith('KFoldDataset') and data.get('test_mode'):
                continue  # a fold of the training data, which are checked as a whole
            for dataset_cfg in leaves(data or None):
                if dataset_cfg not in seen:
                    seen.append(dataset_cfg)
                    yield _make_source(split, dataset_cfg, registry, num_classes, whole, image_channels(cfg))


def find_same(cfg: Config, splits: tuple[str, ...]) -> list[tuple[str, Problem]]:
    """Return split and problem for each split that has a data set of the training data, by the same config."""
    parts = {split: leaves((cfg.get(f'{split}_dataloader') or {}).get('dataset') or None) for split in splits}
    training, message = parts.pop('train', []), 'has a data set of train: its scores have no meaning'
    same = [split for split, own in parts.items() if any(part in training for part in own)]
    return [(split, Problem('same', f'{split}_dataloader', message)) for split in same]


def _make_source(
    split: str, cfg: dict, registry: Any, num_classes: int | None, whole: bool, channels: int | None
) -> Source:
    built_by = cfg['type'] if callable(cfg['type']) else registry.get(cfg['type'])
    if not (isinstance(built_by, type) and issubclass(built_by, BaseDataset)):
        return Source(split, str(cfg['type']))
    names, takes_any = accepted_arguments(built_by)
    pipeline = cfg.get('pipeline', [])
    root = cfg.get('data_root')
    if root and '://' not in root and not cfg.get('download'):
        os.scandir(root).close()  # some data sets only use an assertion
    light = dict(lazy_init=True, serialize_data=False, pipeline=[])
    with naming_part(f'building {split}_dataloader.dataset'):
        dataset = registry.build(cfg | {name: value for name, value in light.items() if takes_any or name in names})
        steps = [_build_step(pipeline, step) for step in ('LoadImageFromFile', 'LoadAnnotations', 'LoadClips')]
        steps[0] = steps[0] or _build_step(pipeline, 'LoadBands')
    classes = dataset.metainfo.get('classes')
    number, ignored = num_classes if classes is None else len(classes), getattr(dataset, 'ignore_index', 255)
    reader = SampleReader(built_by.__name__, number, ignored, *steps, whole, channels)
    return Source(split, built_by.__name__, dataset, reader)


def _build_step(pipeline: Any, name: str) -> BaseTransform | None:
    """Build the first step of a pipeline with a name, also one inside other steps; None without it."""
    named = (step for step in steps_in(pipeline) if str(step.get('type')).split('.')[-1] == name)
    step = next(named, None)
    return None if step is None else TRANSFORMS.build(step)
