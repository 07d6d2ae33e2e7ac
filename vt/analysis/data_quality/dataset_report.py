"""All data of a config, read once: what they are, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from mmengine.config import Config
from rich.console import Console
from rich.progress import track

from vt.analysis.data_quality.data_check import Source, find_sources
from vt.analysis.data_quality.samples import Problem, Sample
from vt.analysis.data_quality.videos import VideoCheck
from vt.errors import UserError
from vt.untrusted_text import printable

SHOWN = 50  # problems on the console; --out has all


def read_data(cfg: Config, splits: tuple[str, ...], threads: int) -> dict:
    """Read every file of the splits in parallel.

    Returns:
        ``data_sets``: for each its split, type, number of samples, sizes, modes and classes; ``problems``: a dict for
        each, with its split, kind, file, line and message; ``counts``: how many problems there are of each kind.
    """
    data_sets, problems, digests = [], [], {}
    for source in find_sources(cfg, splits, with_digest=True):
        found, infos = _list_samples(source)
        seen = source.read(range(len(infos)), threads) if infos else []
        samples = list(track(seen, f'Reading {source.split}', len(infos), disable=not infos or not source.has_files))
        found += [problem for sample in samples for problem in sample.problems]
        found += _duplicates(source.split, infos, samples, digests)
        problems += [dict(split=source.split, **asdict(problem)) for problem in found]
        if source.dataset is not None:
            data_sets.append(_describe(source, infos, samples))
    counts = dict(Counter(problem['kind'] for problem in problems).most_common())
    return dict(data_sets=data_sets, counts=counts, problems=problems)


def _list_samples(source: Source) -> tuple[list[Problem], list[dict]]:
    """What the data set lists; nothing where its annotations are wrong."""
    if source.dataset is None:
        return [Problem('not read', source.name, "is none of OpenMMLab's data sets, so nothing of it was read")], []
    problems = source.annotation_problems()
    if problems:
        return problems, []
    try:
        dataset = source.load()
    except (OSError, UserError) as error:
        return [Problem('empty', _folder_of(source), f'gives no samples: {error}')], []
    try:
        source.check_classes()
    except UserError as error:
        problems = [Problem('classes', _folder_of(source), f'has classes that cannot be used: {error}')]
    return problems, [dataset.get_data_info(index) for index in range(len(dataset))]


def _folder_of(source: Source) -> str:
    return str(source.dataset.data_prefix.get('img_path') or source.dataset.data_root)


def _duplicates(split: str, infos: list[dict], samples: list[Sample], digests: dict[str, dict]) -> Iterator[Problem]:
    """Images or videos that an earlier split has too: a test on what was trained on proves nothing."""
    own: dict[str, str] = {}
    for info, sample in zip(infos, samples):
        if sample.digest is None:
            continue
        what = 'image' if sample.num_frames is None else 'video'
        for other, seen in digests.items():
            if other != split and 'train' in (other, split) and sample.digest in seen:
                yield Problem('duplicate', info['img_path'], f'is the same {what} as {seen[sample.digest]} of {other}')
        own[sample.digest] = info['img_path']
    digests.setdefault(split, {}).update(own)


def _describe(source: Source, infos: list[dict], samples: list[Sample]) -> dict:
    sizes = np.array([sample.size for sample in samples if sample.size is not None])
    modes = Counter(sample.mode for sample in samples if sample.mode is not None)
    return dict(
        split=source.split,
        type=source.name,
        samples=len(infos),
        files=source.has_files,
        smallest=sizes.min(axis=0).tolist() if len(sizes) else None,
        largest=sizes.max(axis=0).tolist() if len(sizes) else None,
        modes=dict(modes.most_common()),
        videos=_describe_videos(source, samples) if isinstance(source.check, VideoCheck) else None,
        classes=_count_classes(source, infos, samples),
    )


def _describe_videos(source: Source, samples: list[Sample]) -> dict[str, Any]:
    """The fewest and the most frames of a video, frames a second and their videos, and videos shorter than a clip."""
    lengths = [sample.num_frames for sample in samples if sample.num_frames]
    span = source.check.load_clips.span
    return dict(
        fewest_frames=min(lengths, default=None),
        most_frames=max(lengths, default=None),
        fps=dict(Counter(f'{sample.fps:.4g}' for sample in samples if sample.fps).most_common()),
        span=span,
        shorter_than_span=sum(length < span for length in lengths),
    )


def _count_classes(source: Source, infos: list[dict], samples: list[Sample]) -> dict[str, int]:
    """How many images, or pixels, each class has."""
    counts = Counter(int(info['gt_label']) for info in infos if isinstance(info.get('gt_label'), (int, np.integer)))
    for sample in samples:
        if sample.counts is not None:
            counts.update({label: int(pixels) for label, pixels in enumerate(sample.counts) if pixels})
    names = source.dataset.metainfo.get('classes')
    named = enumerate(names) if names is not None else ((label, label) for label in sorted(counts))
    return {str(name): counts[label] for label, name in named}


def print_report(report: dict) -> None:
    """Print data sets, the first problems and how many there are of each kind."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    problems = report['problems']
    for data_set in report['data_sets']:
        console.print(printable('; '.join(_describe_data_set(**data_set))))
    for problem in problems[:SHOWN]:
        where = Problem(**{name: value for name, value in problem.items() if name != 'split'})
        console.print(printable(f'{problem["split"]}: {where}'))
    if len(problems) > SHOWN:
        console.print(f'... and {len(problems) - SHOWN} more; --out FILE has them all')
    counts = ', '.join(f'{number} {kind}' for kind, number in report['counts'].items())
    console.print(f'{len(problems)} problems: {counts}' if counts else 'No problem found.')


def _describe_data_set(
    split: str,
    type: str,
    samples: int,
    files: bool,
    smallest: list,
    largest: list,
    modes: dict,
    videos: dict | None,
    classes: dict,
) -> Iterator[str]:
    yield f'{split}: {type}, {samples:,} samples'
    if not files:
        yield 'made in memory: no files to read'
    if smallest:
        small, large = ('x'.join(map(str, size)) for size in (smallest, largest))
        yield f'{small} pixels' if small == large else f'{small} to {large} pixels'
    yield from (f'{number:,} {mode}' for mode, number in modes.items())
    if videos and videos['most_frames']:
        yield f'{videos["fewest_frames"]} to {videos["most_frames"]} frames'
        yield from (f'{number:,} at {fps} frames/s' for fps, number in videos['fps'].items())
        yield f'{videos["shorter_than_span"]:,} shorter than a clip, which spans {videos["span"]}'
    if classes:
        fewest, most = min(classes, key=classes.__getitem__), max(classes, key=classes.__getitem__)
        yield f'{len(classes)} classes, from {classes[fewest]:,} ({fewest}) to {classes[most]:,} ({most})'
