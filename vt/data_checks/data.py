"""Check the data sets of a config: samples of them before a run, all of them in ``tools/check_dataset.py``."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS, TRANSFORMS
from rich.progress import track

from vt.datasets.bands import LoadBands
from vt.datasets.hugging_face import RowSamples
from vt.engine.checks.channels import image_channels
from vt.engine.checks.config import accepted_arguments
from vt.engine.config_parts import leaves, steps_in
from vt.engine.errors import naming_part
from vt.errors import UserError
from vt.untrusted_text import check_class_names

from .coverage import find_left_out
from .labels import Labels, find_label_problems, find_values, labels_of
from .samples import Problem, Sample, SampleReader, infos_of

MOST_LISTED = 20_000  # files of a list that are looked up before a run
MOST_SAMPLES = 256  # samples of a split that are read before a run
PER_FILE = ('duplicate', 'turned', 'frames', 'depth')  # warnings of which the first is shown, and how many there are
IMAGES = ('LoadImageFromFile', 'LoadBands')  # steps that load an image
# Kinds of problems that only warn.
WARNINGS = (*PER_FILE, 'left out', 'no samples', 'order', 'same')


@dataclass
class Source:
    """A data set of a config, without wrappers, and the results of its checks."""

    split: str  # 'train', 'val' or 'test'
    cfg: dict
    dataset: BaseDataset | None = None  # None for a type that is not OpenMMLab's
    reader: SampleReader | None = None
    samples: list[Sample] = field(default_factory=list)
    rows: RowSamples | None = None  # before a run, rows of which only some are in ``samples``; there may be millions
    labels: Labels | None = None  # None if the annotations are not loaded
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
        number, indices = len(infos), []
        if most is None or reader.load_mask or reader.load_clips or isinstance(reader.load_image, LoadBands):
            indices = np.linspace(0, number - 1, min(most or number, number)).astype(int).tolist()
        if most is not None and isinstance(infos, RowSamples):
            self.rows = infos
        known = range(number) if self.rows is None else infos.find_labels_from(reader.num_classes)
        samples = {index: reader.describe(infos[index]) for index in {*known} - {*indices}}
        with ThreadPoolExecutor(threads) as pool:
            seen = pool.map(lambda index: reader(dataset.get_data_info(index)), indices)
            silent = most is not None or not self.has_files
            samples.update(zip(indices, track(seen, f'Reading {self.split}', len(indices), disable=silent)))
        self.samples = [samples[index] for index in sorted(samples)]
        if self.has_files and dataset.ann_file and not getattr(reader.load_image, 'backend_args', None):
            self.problems += self._find_missing()
        read = [problem for sample in self.samples for problem in sample.problems]
        self.problems = [*dict.fromkeys([*self.problems, *read])]
        # Before a run, images in memory that are equal are no reason to refuse it.
        self.problems += find_contradictions([sample for sample in self.samples if sample.path or most is None])
        self.labels = labels_of(self.split, dataset, self.samples, reader.num_classes)
        if self.rows is not None:
            self.labels.counts, self.labels.total = self.rows.count_labels(), number
        self.problems += find_values(self.labels)
        self.problems += find_left_out(dataset)

    def _load(self) -> None:
        if self.has_files and self.folder and '://' not in self.folder and not self.dataset.ann_file:
            require_split(Path(self.folder))
        with naming_part(f'loading {self.split}_dataloader.dataset ({self.reader.name})'):
            self.dataset.full_init()
        if not len(self.dataset):
            raise UserError(f'the {self.split} split is empty: correct {self.split}_dataloader.dataset in the config')
        classes = self.dataset.metainfo.get('classes')
        if classes is not None:  # class names of folders, files and features are known only now
            self.reader.num_classes = len(check_class_names(classes, f'the list of classes of {self.reader.name}'))

    def _find_missing(self) -> Iterator[Problem]:
        """Yield a problem for each listed file that does not exist; of long lists a part is looked up."""
        for sample in self.samples[:: -(-len(self.samples) // MOST_LISTED)]:
            if sample.path and '://' not in sample.path and not os.path.isfile(sample.path):
                yield Problem('missing', sample.path, 'does not exist')


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
    grouped: dict[Any, list[Problem]] = {}
    for split, problem in find_problems(sources):
        kind = problem.kind if problem.kind in PER_FILE else 'error' if problem.kind not in WARNINGS else problem
        grouped.setdefault((split, kind), []).append(problem)
    lines = []
    for (split, kind), (first, *more) in grouped.items():
        advice = [f'; {problem}' for problem in more if problem.kind == 'values']  # about masks
        number = f' (and {len(more) - len(advice)} more)' if len(more) > len(advice) else ''
        lines.append(f'{split} data: {first}{number}{"".join(advice)}')
        if kind == 'error':
            raise UserError(lines[-1])
    return lines


def find_problems(sources: Sequence[Source]) -> list[tuple[str, Problem]]:
    """Return split and problem for all problems of data sets, and of the splits beside each other."""
    train = [source for source in sources if source.split == 'train']
    for source in sources:
        if source.split != 'train':
            source.problems += find_duplicates(source, train)
    found = [(source.split, problem) for source in sources for problem in source.problems]
    return [*found, *find_label_problems([source.labels for source in sources if source.labels])]


def find_duplicates(source: Source, train: Sequence[Source]) -> Iterator[Problem]:
    """Yield a problem for each image or video of a data set that is also in the training data."""
    trained = {key: sample for each in train for sample in each.samples if (key := sample.key) is not None}
    rows = [each.rows for each in train if each.rows is not None]
    addresses = [getattr(each.dataset, 'address', None) for each in train]
    samples: Iterable[Sample] = source.samples
    if source.rows is not None and source.dataset.address in addresses:
        samples = map(source.reader.describe, source.rows)  # one by one, since there may be millions
    found = []
    for sample in samples:
        own = sample if any(each.has_image(sample.path) for each in rows) else None
        if same := trained.get(sample.key) or own:
            found.append((sample, same))
    number = len(source.samples if source.rows is None else source.rows)
    share = f'the score of {len(found):,} of {number:,} has no meaning'
    advice = '; set test_mode=True, as for MNIST and similar data sets' if len(found) == number else ''
    for sample, same in found:
        what = 'image' if sample.num_frames is None else 'video'
        message = f'is the same {what} as {same.name} of train: {share}{"" if sample.path else advice}'
        yield Problem('duplicate', sample.name, message)


def find_contradictions(samples: Sequence[Sample]) -> Iterator[Problem]:
    """Yield a problem for each image or video that is an earlier one, or a copy of it, with other labels."""
    known: dict[str, Sample] = {}
    for sample in samples:
        key = sample.digest or sample.path
        first = known.setdefault(key, sample) if key and not sample.problems else sample
        if first.labels != sample.labels:
            message = f'has the labels {sample.labels}, but {first.name}, the same file, has {first.labels}'
            yield Problem('contradiction', sample.name, message)


def find_sources(cfg: Config, splits: tuple[str, ...], whole: bool = False) -> list[Source]:
    """Return the data sets of splits inside wrappers such as ``RepeatDataset``, each once; ``whole``: of the reader."""
    sources: list[Source] = []
    model = cfg.get('model', {})
    head = model.get('head') or model.get('decode_head')
    num_classes = head.get('num_classes') if isinstance(head, dict) else None
    with DATASETS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
        for split in splits:
            data = (cfg.get(f'{split}_dataloader') or {}).get('dataset') or {}
            if 'train' in splits and str(data.get('type')).endswith('KFoldDataset') and data.get('test_mode'):
                continue  # a fold of the training data, which are checked as a whole
            for dataset_cfg in leaves(data or None):
                same = next((source for source in sources if source.cfg == dataset_cfg), None)
                if same is None:
                    source = Source(split, dataset_cfg)
                    _build(source, registry, num_classes, image_channels(cfg), whole)
                    sources.append(source)
                elif same.split == 'train' != split:
                    message = f'is the data set of {split}, too: its scores have no meaning'
                    same.problems.append(Problem('same', 'train_dataloader.dataset', message))
    return sources


def _build(source: Source, registry: Any, num_classes: int | None, channels: int | None, whole: bool) -> None:
    """Build the data set of a source, without its pipeline, and its reader, unless its type is not OpenMMLab's."""
    cfg = source.cfg
    built_by = cfg['type'] if callable(cfg['type']) else registry.get(cfg['type'])
    if not (isinstance(built_by, type) and issubclass(built_by, BaseDataset)):
        message = "is not one of OpenMMLab's data sets and was not read"
        source.problems.append(Problem('not read', str(cfg['type']), message))
        return
    names, takes_any = accepted_arguments(built_by)
    pipeline = cfg.get('pipeline', [])
    root = cfg.get('data_root')
    if root and '://' not in root and not cfg.get('download'):
        os.scandir(root).close()  # some data sets only use an assertion
    light = dict(lazy_init=True, serialize_data=False, pipeline=[])
    with naming_part(f'building {source.split}_dataloader.dataset'):
        dataset = registry.build(cfg | {name: value for name, value in light.items() if takes_any or name in names})
        steps = [_build_step(pipeline, *names) for names in (IMAGES, ('LoadAnnotations',), ('LoadClips',))]
    ignored = getattr(dataset, 'ignore_index', 255)
    source.reader = SampleReader(built_by.__name__, num_classes, ignored, *steps, whole, channels)
    source.dataset = dataset


def _build_step(pipeline: Any, *names: str) -> Any:
    """Build the first step of a pipeline with one of the names, also one inside other steps; None without it."""
    named = (step for step in steps_in(pipeline) if str(step.get('type')).split('.')[-1] in names)
    step = next(named, None)
    return None if step is None else TRANSFORMS.build(step)
