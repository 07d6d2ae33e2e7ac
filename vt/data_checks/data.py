"""Check the data sets of a config: samples of them before a run, all of them in ``vt check-dataset``."""

import os
import time
from collections import ChainMap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import joblib
import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import TRANSFORMS
from rich.progress import track

from vt.datasets.bands import LoadBands
from vt.datasets.folder_contents import MOST_FILES, unused_reason
from vt.datasets.table_dataset import PREFIX
from vt.engine.config.data import Data
from vt.engine.config.parts import MASK_STEPS, find_wrapper, leaves, steps_in
from vt.engine.config.steps import HELD_OUT
from vt.engine.hooks.num_classes import IGNORED_LABEL
from vt.errors import UserError
from vt.files import files_below
from vt.hints import as_typed
from vt.untrusted_text import check_class_names

from .labels import Labels, find_label_problems, find_values, labels_of
from .samples import Problem, Sample, SampleReader, iter_data_infos, missing

MOST_LISTED, MOST_READ = 20_000, 2_000  # files of a list that are looked up, and samples that are read, before a run
SECONDS = 1.0  # time in which samples of a split are read before a run
LEAST = 256  # samples with masks or bands, or videos, that are read before a run, however long it takes
PER_FILE = ('duplicate', 'turned', 'frames', 'depth')  # warnings of which the first is shown, and how many there are
WARNINGS = (*PER_FILE, 'left out', 'no samples', 'order', 'same')  # kinds of problems that only warn
IMAGES = ('LoadImageFromFile', 'LoadBands')  # steps that load an image


def check_data(data: Data, splits: tuple[str, ...]) -> list[str]:
    """Check splits of a config in seconds: labels, folders, and as many samples as can be read in that time.

    They are chosen at random; ``vt check-dataset`` reads all.

    Returns:
        A line for each problem of a kind in ``WARNINGS``.

    Raises:
        UserError: there is another problem; the message names the first files and counts the others.
        OSError: a folder does not exist or cannot be read.
    """
    sources, _ = find_sources(data, splits)
    for source in sources:
        source.look(joblib.cpu_count(), whole=False)
    grouped: dict[Any, list[Problem]] = {}
    for split, problem in find_problems(sources):
        kind = problem.kind if problem.kind in PER_FILE else 'error' if problem.kind not in WARNINGS else problem
        grouped.setdefault((split, kind), []).append(problem)
    lines = []
    for (split, kind), (first, *more) in grouped.items():
        advice = [f'; {problem}' for problem in more if problem.kind == 'values']  # about masks
        others = [problem.file for problem in more if problem.kind != 'values']
        names = f': {", ".join(others[:3])}{", ..." * (len(others) > 3)}' if kind == 'error' else ''
        number = f' (and {len(others):,} more{names})' if others else ''
        lines.append(f'{split} data: {first}{number}{"".join(advice)}')
        if kind == 'error':
            raise UserError(lines[-1] + (_count_read(sources, split) if first.kind == 'unreadable' else ''))
    return lines


def _count_read(sources: Sequence['Source'], split: str) -> str:
    """Return how many samples of a split were read, for a message; ``''`` for all."""
    counts = [(len(source.samples), len(source.dataset)) for source in sources if source.split == split]
    read, total = map(sum, zip(*counts))
    rest = f'; {read:,} of {total:,} samples were read: {as_typed("vt check-dataset")} reads all'
    return rest if read < total else ''


@dataclass
class Source:
    """A data set of a config, without wrappers, and the results of its checks; iteration yields all its samples."""

    split: str  # 'train', 'val' or 'test'
    cfg: dict
    data: Data
    dataset: BaseDataset
    reader: SampleReader
    samples: dict[int, Sample] = field(default_factory=dict)  # those that were read, by their index
    known: dict[str, Sample] = field(default_factory=dict)  # the first of each file or content
    labels: Labels | None = None  # None if the annotations are not loaded
    problems: list[Problem] = field(default_factory=list)

    def __iter__(self) -> Iterator[Sample]:
        for index, info in enumerate(iter_data_infos(self.dataset)):  # one by one, since there may be millions
            yield self.samples.get(index) or self.reader.describe(info)

    @property
    def has_files(self) -> bool:
        """Whether samples are read from files; data sets may be in memory."""
        return any((self.reader.load_image, self.reader.load_mask, self.reader.load_clips))

    @property
    def folder(self) -> str:
        """Folder of images or videos; ``''`` if the data set names none."""
        return str(self.dataset.data_prefix.get('img_path') or '')

    def look(self, threads: int, whole: bool = True) -> None:
        """Load the annotations, read samples and collect the problems of this data set.

        Args:
            threads: number of threads that read.
            whole: read all samples; otherwise as many as ``SECONDS`` allow, in random order, and at least ``LEAST`` of
                those that have masks or bands or are videos.

        Raises:
            UserError: the data set cannot be loaded, or there are no samples.
            OSError: a folder does not exist or cannot be read.
        """
        everything = self.dataset
        loaded = self.data.load(self.cfg, f'{self.split}_dataloader.dataset')
        self.dataset = loaded if loaded is everything else loaded.dataset  # the held-out part of it
        classes = self.dataset.metainfo.get('classes')
        if classes is not None:  # class names of folders, files and features are known only now
            self.reader.num_classes = len(check_class_names(classes, f'the list of classes of {self.reader.name}'))
        self._read(threads, whole)
        self.labels = labels_of(self.split, self.dataset, self._check_samples(whole), self.reader.num_classes)
        self.problems = [*dict.fromkeys(self.problems)]
        self.problems += find_values(self.labels)
        if not self.cfg.get('test_mode') or loaded is everything:
            self.problems += find_left_out(everything)

    def _read(self, threads: int, whole: bool) -> None:
        """Read all samples, or those that the time allows."""
        dataset, reader, number = self.dataset, self.reader, len(self.dataset)
        if not (whole or self.has_files):
            return
        indices = range(number) if whole else np.random.default_rng(0).permutation(number)[:MOST_READ].tolist()
        is_more = reader.load_mask or reader.load_clips or isinstance(reader.load_image, LoadBands)
        least, end = number if whole else LEAST if is_more else 0, time.monotonic() + SECONDS

        def read(place: int) -> Sample | None:
            is_due = place < least or time.monotonic() < end
            return reader(dataset.get_data_info(indices[place])) if is_due else None

        silent = not (whole and self.has_files)
        with ThreadPoolExecutor(threads) as pool:
            found = pool.map(read, range(len(indices)))
            found = track(found, f'Reading {self.split}', len(indices), disable=silent)
            self.samples = {index: sample for index, sample in zip(indices, found, strict=True) if sample}

    def _check_samples(self, whole: bool) -> Iterator[Sample]:
        """Yield all samples, and collect the problems of each: of long lists, a part of the files is looked up.

        Two samples of one file, or of equal content, must have the same labels. Before a run (not ``whole``), equal
        images in memory are not an error.
        """
        listed = self.has_files and self.dataset.ann_file and not getattr(self.reader.load_image, 'backend_args', None)
        every = -(-len(self.dataset) // MOST_LISTED)
        for index, sample in enumerate(self):
            is_local = sample.path and '://' not in sample.path
            if listed and is_local and index % every == 0 and not os.path.isfile(sample.path):
                self.problems.append(missing(sample.path))
            self.problems += sample.problems
            first = self.known.setdefault(sample.key, sample) if sample.key else sample
            if first.labels != sample.labels and (whole or sample.path) and not (first.problems or sample.problems):
                words = f'has the labels {sample.labels}, but {first.name}, the same file, has {first.labels}'
                self.problems.append(Problem('contradiction', sample.name, words))
            yield sample


def find_sources(
    data: Data, splits: tuple[str, ...], whole: bool = False, num_channels: int | None = None
) -> tuple[list[Source], list[tuple[str, Problem]]]:
    """Return the data sets of splits inside wrappers such as ``RepeatDataset``, each once.

    Args:
        data: the data sets of a config.
        splits: such as ``'train'``.
        whole: see :class:`vt.data_checks.samples.SampleReader`.
        num_channels: see :class:`vt.data_checks.samples.SampleReader`.

    Returns:
        The data sets, and split and problem of those that are not OpenMMLab's, which are not read.
    """
    cfg, model = data.cfg, data.cfg.get('model', {})
    head = model.get('head') or model.get('decode_head')
    given = head.get('num_classes') if isinstance(head, dict) else None
    num_classes = given if isinstance(given, int) else None  # 'auto' where the data could not be read
    parts: list[tuple[str, dict]] = []
    for split in splits:
        dataset = (cfg.get(f'{split}_dataloader') or {}).get('dataset')
        held_out = find_wrapper(dataset, HELD_OUT)
        if whole and held_out and leaves(held_out) == [held_out.get('dataset')]:
            parts.append((split, held_out))
        elif 'train' not in splits or not (held_out and held_out.get('test_mode')):  # else checked with all of train's
            parts += [(split, part) for part in leaves(dataset)]
    sources: list[Source] = []
    others: list[tuple[str, Problem]] = []
    for split, part in parts:
        same = next((source for source in sources if source.cfg == part), None)
        own = leaves(part)[0]
        if same is None:
            kind = data.kind_of(own)
            if isinstance(kind, type) and issubclass(kind, BaseDataset):
                dataset = data.build(own, f'{split}_dataloader.dataset')
                ignored = getattr(dataset, 'ignore_index', IGNORED_LABEL)
                loading = [_loading_step(data, own, names) for names in (IMAGES, MASK_STEPS, ('LoadClips',))]
                reader = SampleReader(kind.__name__, num_classes, ignored, *loading, whole, num_channels)
                sources.append(Source(split, part, data, dataset, reader))
            else:
                words = 'is not an OpenMMLab data set and was not read'
                others.append((split, Problem('not read', str(own['type']), words)))
        elif same.split == 'train' != split:
            message = f'is also the data set of {split}: scores on training data have no meaning'
            same.problems.append(Problem('same', 'train_dataloader.dataset', message))
    return sources, others


def _loading_step(data: Data, dataset: dict, names: Sequence[str]) -> Any:
    """Return the first step of a pipeline of a type with one of these names; None without."""
    steps = steps_in(dataset.get('pipeline'))
    step = next((step for step in steps if str(step.get('type')).split('.')[-1] in names), None)
    with TRANSFORMS.switch_scope_and_registry(data.scope):
        return None if step is None else TRANSFORMS.build(step)


def find_left_out(dataset: BaseDataset) -> Iterator[Problem]:
    """Yield a problem for each folder of images, videos or masks and each reason why some of its files are not used.

    Files that a list or ``indices`` leave out, hidden ones, and other masks of an image are expected. The annotations
    must be loaded. Remote folders, and those of data sets without files, are skipped.
    """
    folders = {key: str(dataset.data_prefix.get(key) or '') for key in ('img_path', 'seg_map_path')}
    folders = {key: folder for key, folder in folders.items() if os.path.isdir(folder)}
    listed = getattr(dataset, 'unused', None)
    used: dict[str, set[str]] = {key: set() for key in folders}
    for info in iter_data_infos(dataset) if listed is None else ():
        for key in folders:
            if info.get(key):
                used[key].add(os.path.normpath(str(info[key])))
    if absent := getattr(dataset, 'absent', None):  # of a list of Kinetics
        yield Problem('left out', str(dataset.ann_file), f'has unused lines: {absent}')
    images, suffix = set(), getattr(dataset, 'img_suffix', '')  # names of images, without suffixes
    for key, folder in folders.items():
        left_out: dict[str, list[str]] = {}
        for path in listed if listed is not None else islice(files_below(folder), MOST_FILES if used[key] else 0):
            name = os.path.relpath(path, folder)
            if key == 'img_path':
                images.add(name.removesuffix(suffix) if suffix else os.path.splitext(name)[0])
            is_used = any(os.path.normpath(path) in paths for paths in used.values())  # both may be in one folder
            reason = None if is_used else unused_reason(name, images if key == 'seg_map_path' else None, dataset)
            if reason:
                left_out.setdefault(reason, []).append(path)
        for reason, files in left_out.items():
            yield Problem('left out', folder, f'has unused files ({len(files):,}), such as {files[0]}: {reason}')


def find_problems(sources: Sequence[Source]) -> list[tuple[str, Problem]]:
    """Return split and problem for all problems of data sets, and of the splits beside each other."""
    loaded = [source for source in sources if source.labels]
    train = [source for source in loaded if source.split == 'train']
    for source in loaded:
        if source.split != 'train':
            source.problems += find_duplicates(source, train)
    found = [(source.split, problem) for source in sources for problem in source.problems]
    return [*found, *find_label_problems([source.labels for source in loaded])]


def find_duplicates(source: Source, train: Sequence[Source]) -> Iterator[Problem]:
    """Yield a problem for each image or video of a data set that is also in the training data."""
    if source.folder.startswith(f'{PREFIX}://') and not source.reader.whole:  # rows have an address each
        train = [each for each in train if each.folder == source.folder]
    if not train:
        return
    trained = ChainMap(*(each.known for each in train))
    found = [sample for sample in source if sample.key in trained]
    share = f'the score of {len(found):,} of {len(source.dataset):,} has no meaning'
    advice = '; set test_mode=True, as for MNIST and similar data sets' if len(found) == len(source.dataset) else ''
    for sample in found:
        what = 'image' if sample.num_frames is None else 'video'
        message = f'is the same {what} as {trained[sample.key].name} of train: {share}{"" if sample.path else advice}'
        yield Problem('duplicate', sample.name, message)
