"""All data of a config, read once: what they are, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from mmengine.config import Config
from rich.progress import track

from vt.errors import UserError

from .coverage import look_at_coverage, problems_of
from .data import WARNINGS, Source, find_sources
from .labels import compare_classes, find_gaps, labels_of, merge_parts, tabulate_classes
from .mask_settings import find_ignored, find_setting_problems
from .masks import explain_values, masks_of
from .samples import Problem, Sample

Read = list[tuple[Source, list[Sample]]]


def read_data(cfg: Config, splits: tuple[str, ...], threads: int) -> dict:
    """Read every file of the splits in parallel.

    Returns:
        As :func:`report_data`, without the samples.
    """
    return report_data(cfg, splits, threads)[0]


def report_data(cfg: Config, splits: tuple[str, ...], threads: int) -> tuple[dict, Read]:
    """Read every file of the splits in parallel; also give the data sets with what was seen of their samples.

    Returns:
        ``data_sets``: for each its split, type, number of samples, sizes, modes, classes and folders, with the files
        of each that are used, and those that are left out by their reasons; ``classes``: a row each, with its number
        of samples or pixels in each split; ``problems`` and ``warnings``: a dict for each, with its split, kind, file,
        line and message; ``counts``: how many problems there are of each kind.
    """
    read: Read = []
    problems, data_sets, labels = [], [], []
    for split, name, source in find_sources(cfg, splits, whole=True):
        if source is None:
            unread = Problem('not read', name, "is none of OpenMMLab's data sets, so nothing of it was read")
            problems.append(dict(split=split, **asdict(unread)))
            continue
        found, number = list_samples(source)
        seen = source.read(range(number), threads) if number else []
        samples = list(track(seen, f'Reading {split}', number, disable=not number or not source.has_files))
        found += [problem for sample in samples for problem in sample.problems]
        for check in CHECKS:
            found += check(source, samples, read)
        coverage = look_at_coverage(source.dataset) if number else []
        if number:
            own = labels_of(split, source.dataset)
            own.counts += count_pixels(samples)
            own.masks = masks = masks_of(source.dataset, source.reader.num_classes, samples)
            labels.append(own)
            found += find_setting_problems(source.dataset, source.reader.load_mask)
            found += [*find_ignored(cfg, split, source.settings, masks), *problems_of(coverage)]
            if masks and (advice := explain_values(masks)):
                found.append(Problem('values', masks.source, f'has masks that {advice}'))
        problems += [dict(split=split, **asdict(problem)) for problem in found]
        read.append((source, samples))
        data_sets.append(_describe(source, samples) | dict(folders=[asdict(folder) for folder in coverage]))
    gaps = [(own.split, problem) for own in merge_parts(labels) for problem in find_gaps(own)]
    problems += [dict(split=split, **asdict(problem)) for split, problem in (*gaps, *compare_classes(labels))]
    warnings = [problem for problem in problems if problem['kind'] in WARNINGS and problem['kind'] != 'duplicate']
    problems = [problem for problem in problems if problem not in warnings]
    counts = dict(Counter(problem['kind'] for problem in problems).most_common())
    rows = tabulate_classes(labels)
    report = dict(data_sets=data_sets, classes=rows, counts=counts, problems=problems, warnings=warnings)
    return report, read


def list_samples(source: Source) -> tuple[list[Problem], int]:
    """What is wrong with what a data set lists, and how many samples can be read; none where annotations are wrong."""
    problems, folder = source.annotation_problems(), source.folder or str(source.dataset.data_root)
    if problems:
        return problems, 0
    try:
        number = len(source.load())
    except (OSError, UserError) as error:
        return [Problem('empty', folder, f'gives no samples: {error}')], 0
    try:
        source.check_classes()
    except UserError as error:
        problems = [Problem('classes', folder, f'has classes that cannot be used: {error}')]
    return problems, number


def find_duplicates(source: Source, samples: list[Sample], read: Read) -> Iterator[Problem]:
    """Images or videos that a split and the training share: a test on what was trained on proves nothing."""
    for other, seen in read:
        if other.split == source.split or 'train' not in (other.split, source.split):
            continue
        known = {sample.digest: sample.path for sample in seen if sample.digest}
        for sample in samples:
            if sample.digest in known:
                what = 'image' if sample.num_frames is None else 'video'
                message = f'is the same {what} as {known[sample.digest]} of {other.split}'
                yield Problem('duplicate', sample.path, message)


# Each yields the problems of a data set, given its samples and the data sets that were read before it.
CHECKS = (find_duplicates,)


def count_pixels(samples: list[Sample]) -> Counter[int]:
    """Pixels of each label in the masks that were read."""
    masks = [sample.counts for sample in samples if sample.counts is not None]
    return Counter({label: int(pixels) for label, pixels in enumerate(sum(masks)) if pixels} if masks else {})


def _describe(source: Source, samples: list[Sample]) -> dict[str, Any]:
    sizes = np.array([sample.size for sample in samples if sample.size is not None])
    modes = Counter(sample.mode for sample in samples if sample.mode is not None)
    return dict(
        split=source.split,
        type=source.name,
        samples=len(samples),
        files=source.has_files,
        smallest=sizes.min(axis=0).tolist() if len(sizes) else None,
        largest=sizes.max(axis=0).tolist() if len(sizes) else None,
        modes=dict(modes.most_common()),
        videos=_describe_videos(samples, source.reader.load_clips.span) if source.reader.load_clips else None,
        classes=_count_classes(source, samples),
        channels=_describe_channels(samples),
    )


def _describe_channels(samples: list[Sample]) -> dict[str, list[float]] | None:
    """Mean and standard deviation of each channel over the pixels of all images, as they are loaded."""
    seen = [(np.prod(sample.size or ()), sample.moments) for sample in samples if sample.moments is not None]
    if not seen or len({moments.shape for _, moments in seen}) > 1:
        return None
    pixels, moments = np.array([number for number, _ in seen]), np.stack([moments for _, moments in seen])
    shares = (pixels / pixels.sum())[:, None]
    mean = (shares * moments[:, 0]).sum(axis=0)
    variance = (shares * (moments[:, 1] ** 2 + (moments[:, 0] - mean) ** 2)).sum(axis=0)
    return dict(mean=mean.tolist(), std=np.sqrt(variance).tolist())


def _describe_videos(samples: list[Sample], span: int) -> dict[str, Any]:
    """The fewest and the most frames of a video, frames a second and their videos, and videos shorter than a clip."""
    lengths = [sample.num_frames for sample in samples if sample.num_frames]
    return dict(
        fewest_frames=min(lengths, default=None),
        most_frames=max(lengths, default=None),
        fps=dict(Counter(f'{sample.fps:.4g}' for sample in samples if sample.fps).most_common()),
        span=span,
        shorter_than_span=sum(length < span for length in lengths),
    )


def _count_classes(source: Source, samples: list[Sample]) -> dict[str, int]:
    """How many images, or pixels, each class has."""
    counts = Counter(label for sample in samples for label in sample.labels) + count_pixels(samples)
    names = source.dataset.metainfo.get('classes')
    named = enumerate(names) if names is not None else ((label, label) for label in sorted(counts))
    return {str(name): counts[label] for label, name in named}
