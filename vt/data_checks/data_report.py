"""Read all data of a config once, and describe them and their problems."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from mmengine.config import Config

from vt.errors import UserError
from vt.untrusted_text import printable

from .data import WARNINGS, Source, find_problems, find_sources
from .labels import tabulate_classes
from .samples import Problem, Sample


def read_data(cfg: Config, splits: tuple[str, ...], threads: int) -> tuple[dict, list[Source]]:
    """Read all files of the splits in parallel.

    Returns:
        A report, and the data sets with the results of their checks. The keys of the report are

        - ``data_sets``: split, number of samples, a line such as printed, samples or pixels of each class, and mean and
          standard deviation of each channel;
        - ``classes``: a row per class with the number of samples or pixels in each split;
        - ``problems`` and ``warnings``: split, kind, file and message of each;
        - ``counts``: number of problems of each kind.
    """
    sources = find_sources(cfg, splits, whole=True)
    listed = [source for source in sources if source.dataset is not None]
    for source in listed:
        try:
            source.look(threads)
        except (OSError, UserError) as error:
            where = source.folder or str(source.dataset.data_root)
            source.problems.append(Problem('not read', where, f'cannot be read: {error}'))
    problems = [dict(split=split, **asdict(problem)) for split, problem in find_problems(sources)]
    warnings = [problem for problem in problems if problem['kind'] in WARNINGS and problem['kind'] != 'duplicate']
    problems = [problem for problem in problems if problem not in warnings]
    counts = dict(Counter(problem['kind'] for problem in problems).most_common())
    rows = tabulate_classes([source.labels for source in listed if source.labels])
    data_sets = [_describe(source) for source in listed]
    return dict(data_sets=data_sets, classes=rows, counts=counts, problems=problems, warnings=warnings), listed


def in_line(problem: dict[str, str]) -> str:
    """Return a problem of a report as one line."""
    return f'{problem["split"]}: {problem["file"]} {problem["message"]}'


def _describe(source: Source) -> dict[str, Any]:
    samples, reader = source.samples, source.reader
    sizes = np.array([sample.size for sample in samples if sample.size is not None])
    lengths = [sample.num_frames for sample in samples if sample.num_frames]
    counts = source.labels.counts_by_name() if source.labels else {}
    facts = [f'{len(samples):,} samples'] + ['made in memory: no files to read'] * (not source.has_files)
    if len(sizes):
        small, large = ('x'.join(map(str, size)) for size in (sizes.min(axis=0), sizes.max(axis=0)))
        facts.append(f'{small} pixels' if small == large else f'{small} to {large} pixels')
    modes = Counter(sample.mode for sample in samples if sample.mode is not None)
    facts += [f'{number:,} {mode}' for mode, number in modes.most_common()]
    if lengths:
        facts.append(f'{min(lengths)} to {max(lengths)} frames')
        span = reader.load_clips.span
        facts.append(f'{sum(length < span for length in lengths):,} shorter than a clip, which spans {span}')
    if counts:
        fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        facts.append(f'{len(counts)} classes, from {counts[fewest]:,} ({fewest}) to {counts[most]:,} ({most})')
    line = printable(f'{source.split}: {reader.name}, {"; ".join(facts)}')
    channels = _describe_channels(samples)
    return dict(split=source.split, samples=len(samples), line=line, classes=counts, channels=channels)


def _describe_channels(samples: list[Sample]) -> dict[str, list[float]] | None:
    """Return mean and standard deviation of each channel over the pixels of all images, as loaded."""
    sums = [sample.sums for sample in samples if sample.sums is not None]
    if len({each.shape for each in sums}) != 1:
        return None
    number, total, squares = np.sum(sums, axis=0)
    mean = total / number
    return dict(mean=mean.tolist(), std=np.sqrt(np.maximum(squares / number - mean**2, 0)).tolist())
