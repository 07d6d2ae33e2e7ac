"""Read all data of a config once, and describe them and their problems."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from mmengine.config import Config

from vt.errors import UserError

from .data import WARNINGS, Source, find_same, find_sources
from .labels import find_label_problems, tabulate_classes
from .overlap import find_duplicates
from .samples import Problem, Sample


def read_data(cfg: Config, splits: tuple[str, ...], threads: int) -> tuple[dict, list[Source]]:
    """Read all files of the splits in parallel.

    Returns:
        A report, and the data sets with the results of their checks. The keys of the report are

        - ``data_sets``: split, type, number of samples, sizes, modes, classes, and folders with used and unused files;
        - ``classes``: a row per class with the number of samples or pixels in each split;
        - ``problems`` and ``warnings``: split, kind, file and message of each;
        - ``counts``: number of problems of each kind.
    """
    sources: list[Source] = []
    for source in find_sources(cfg, splits, whole=True):
        if source.dataset is None:
            message = "is not one of OpenMMLab's data sets and was not read"
            source.problems.append(Problem('not read', source.name, message))
        else:
            try:
                source.look(threads)
            except (OSError, UserError) as error:
                where = source.folder or str(source.dataset.data_root)
                source.problems.append(Problem('empty', where, f'has no samples: {error}'))
        for other in sources:
            if source.split != other.split and 'train' in (source.split, other.split):
                source.problems += find_duplicates(source.samples, other.samples, other.split)
        sources.append(source)
    labels = [source.labels for source in sources if source.labels]
    found = [(source.split, problem) for source in sources for problem in source.problems]
    problems = [
        dict(split=split, **asdict(problem))
        for split, problem in (*found, *find_label_problems(labels), *find_same(cfg, splits))
    ]
    warnings = [problem for problem in problems if problem['kind'] in WARNINGS and problem['kind'] != 'duplicate']
    problems = [problem for problem in problems if problem not in warnings]
    counts = dict(Counter(problem['kind'] for problem in problems).most_common())
    sources = [source for source in sources if source.dataset is not None]
    rows, data_sets = tabulate_classes(labels), [_describe(source) for source in sources]
    return dict(data_sets=data_sets, classes=rows, counts=counts, problems=problems, warnings=warnings), sources


def _describe(source: Source) -> dict[str, Any]:
    samples = source.samples
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
        classes=source.labels.counts_by_name() if source.labels else {},
        folders=[asdict(folder) for folder in source.coverage],
        channels=_describe_channels(samples),
    )


def _describe_channels(samples: list[Sample]) -> dict[str, list[float]] | None:
    """Return mean and standard deviation of each channel over the pixels of all images, as loaded."""
    seen = [(np.prod(sample.size or ()), sample.moments) for sample in samples if sample.moments is not None]
    if not seen or len({moments.shape for _, moments in seen}) > 1:
        return None
    pixels, moments = np.array([number for number, _ in seen]), np.stack([moments for _, moments in seen])
    shares = (pixels / pixels.sum())[:, None]
    mean = (shares * moments[:, 0]).sum(axis=0)
    variance = (shares * (moments[:, 1] ** 2 + (moments[:, 0] - mean) ** 2)).sum(axis=0)
    return dict(mean=mean.tolist(), std=np.sqrt(variance).tolist())


def _describe_videos(samples: list[Sample], span: int) -> dict[str, Any]:
    """Return the lowest and highest number of frames, frame rates, and the number of videos shorter than a clip."""
    lengths = [sample.num_frames for sample in samples if sample.num_frames]
    return dict(
        fewest_frames=min(lengths, default=None),
        most_frames=max(lengths, default=None),
        fps=dict(Counter(f'{sample.fps:.4g}' for sample in samples if sample.fps).most_common()),
        span=span,
        shorter_than_span=sum(length < span for length in lengths),
    )
