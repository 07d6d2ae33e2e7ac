"""Command of ``vt check-dataset``: read all data of a config once."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from rich.console import Console

from vt.analysis.tables import print_table
from vt.apis.model_zoo import name_of
from vt.data_checks.data import WARNINGS, Source, find_problems, find_sources
from vt.data_checks.labels import tabulate_classes
from vt.data_checks.samples import Problem, Sample
from vt.datasets.bands import LoadBands
from vt.engine.config.data import Data
from vt.engine.config.imbalance import pixel_weights
from vt.engine.config.parts import Preparation, preparation_of
from vt.engine.config.steps import Run, RunOptions, prepare
from vt.engine.hooks.training_images import draw_inputs
from vt.engine.run.launch import build_prepared
from vt.engine.run.schedules import planned_rates
from vt.errors import UserError
from vt.files import write_json
from vt.paths import check_output
from vt.untrusted_text import printable

from .data_page import in_line, write_page

UNEVEN = 3  # ratio of samples, or pixels, of the largest and the smallest class from which imbalance is reported
SAMPLES, POINTS = 20, 200  # of --show: images, and points of the learning rate
SHOWN = 50  # problems on the console, or rows of the table; --out has all


def check_dataset(args: argparse.Namespace) -> None:
    """Print a description of the data and their problems, and write them to ``--out``; exit with 1 on problems.

    ``--out`` is a JSON file or, without a suffix, a folder for ``data.json`` and a page, ``index.html``.

    Raises:
        UserError: the config is wrong or does not exist.
    """
    folder = Path(args.out) if args.out and (Path(args.out).is_dir() or not Path(args.out).suffix) else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f'--out {folder} is a file: give a folder, or a file that ends in .json')
    check_output(folder / 'data.json' if folder and folder.is_dir() else args.out, args.config)
    run = prepare(args.config, RunOptions(args.cfg_options or {}, trains=False))
    cfg = run.cfg
    if args.show and Path(args.show).suffix != '.png':
        raise UserError(f'--show {args.show} must end in .png')
    if args.workers is not None and args.workers < 1:
        raise UserError(f'--workers {args.workers} must be at least 1')
    report, sources = read_data(run.data, tuple(args.splits), args.workers or joblib.cpu_count())
    print_report(report)
    for note in [*run.notes, *run.data.notes]:
        print(note)
    print_channels(report, run.inputs)
    print_imbalance(sources, cfg)
    if args.show:
        show_samples(run, Path(args.show))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(report, folder / 'data.json')
        name = (args.cfg_options or {}).get('data') or name_of(args.config)
        write_page(folder / 'index.html', name, report, sources, run.inputs.is_bgr)
        print(f'written to {folder}')
    elif args.out:
        write_json(report, args.out)
    if report['problems']:
        sys.exit(1)


def show_samples(run: Run, path: Path) -> None:
    """Draw samples spread over the training data as the network gets them, augmented, with their labels and the plan.

    The plan is the learning rate of a training.
    """
    with TemporaryDirectory() as folder:
        run.cfg.work_dir, run.cfg.log_level, run.cfg.visualizer = folder, 'ERROR', None
        runner = build_prepared(run)
        rates = []
        try:
            rates = planned_rates(runner, POINTS) if run.cfg.get('train_cfg') and run.cfg.get('optim_wrapper') else []
        except UserError as error:
            print(f'no learning rate: {error}')
    preprocessor: Any = runner.model.data_preprocessor
    dataset = run.data.load_for_run(run.cfg.train_dataloader.dataset)
    places = np.linspace(0, len(dataset) - 1, min(len(dataset), SAMPLES)).astype(int)
    batch = preprocessor(pseudo_collate([dataset[int(place)] for place in places]), training=True)
    draw_inputs(batch, preprocessor, run.inputs.takes_bgr, dataset.metainfo, path, most=SAMPLES, rates=rates)
    print(f'written to {path}')


def print_report(report: dict) -> None:
    """Print the data sets, the first problems, and the number of each kind."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    problems = report['problems']
    for data_set in report['data_sets']:
        console.print(data_set['line'])
    if 1 < len(report['classes']) <= SHOWN:
        print_table(report['classes'], 'Classes, and their samples (pixels of masks) in each split')
    for problem in (*problems[:SHOWN], *report['warnings'][:SHOWN]):
        level = 'warning: ' if problem in report['warnings'] else ''
        console.print(printable(level + in_line(problem)))
    if len(problems) > SHOWN:
        console.print(f'... and {len(problems) - SHOWN} more; --out FILE writes all of them')
    counts = ', '.join(f'{number} {kind}' for kind, number in report['counts'].items())
    warnings = f' {len(report["warnings"])} warnings.' if report['warnings'] else ''
    console.print((f'{len(problems)} problems: {counts}.' if counts else 'No problem found.') + warnings)


def print_channels(report: dict, prepared: Preparation) -> None:
    """Print mean and standard deviation of the training images, in the form of the config's ``data_preprocessor``."""
    found = next((each['channels'] for each in report['data_sets'] if each['split'] == 'train'), None)
    if found:
        is_turned = len(found['mean']) == 3 and bool(prepared.turn) != (found['read_as'] == 'BGR')
        mean, std = ([round(value, 3) for value in found[key][:: -1 if is_turned else 1]] for key in ('mean', 'std'))
        order = f' ({"BGR" if is_turned else "RGB"})' if found['read_as'] else ''
        print(f'training images{order}: data_preprocessor = dict(mean={mean}, std={std})')


def print_imbalance(sources: Sequence[Source], cfg: Config) -> None:
    """Print config lines that weight the training classes, if their sizes differ by a factor of ``UNEVEN``."""
    own = [source.labels for source in sources if source.split == 'train' and source.labels and source.labels.names]
    counts = sum((labels.counts for labels in own), Counter())
    found = [counts[label] for label in range(len(own[0].names)) if counts[label]] if own else []
    if not found or max(found) < UNEVEN * min(found) or cfg.get('imbalance'):
        return
    line = "imbalance = 'weighted', or 'balanced', or 'focal'"
    if own[0].masks:  # MMSegmentation has no weights of classes for a sigmoid
        line = f'class_weight={pixel_weights(counts, len(own[0].names))} for a softmax in model.decode_head.loss_decode'
    times = f'{max(found) / min(found):,.0f} times the samples of the rarest'
    print(f'training classes: the most frequent has {times}: {line}')


def read_data(data: Data, splits: tuple[str, ...], threads: int) -> tuple[dict, list[Source]]:
    """Read all files of the splits in parallel.

    Returns:
        A report, and the data sets with the results of their checks. The keys of the report are

        - ``data_sets``: split, number of samples, a line such as printed, samples or pixels of each class, and mean and
          standard deviation of each channel, in ``order`` RGB also if they are ``read_as`` BGR; None for others;
        - ``classes``: a row per class with the number of samples or pixels in each split;
        - ``problems`` and ``warnings``: split, kind, file and message of each;
        - ``counts``: number of problems of each kind.
    """
    prepared = preparation_of(data.cfg)
    sources, others = find_sources(data, splits, whole=True, num_channels=prepared.channels)
    for source in sources:
        try:
            source.look(threads)
        except (OSError, UserError) as error:
            where = source.folder or str(source.dataset.data_root)
            source.problems.append(Problem('not read', where, f'cannot be read: {error}'))
    problems = [dict(split=split, **asdict(problem)) for split, problem in (*others, *find_problems(sources))]
    warnings = [problem for problem in problems if problem['kind'] in WARNINGS and problem['kind'] != 'duplicate']
    problems = [problem for problem in problems if problem not in warnings]
    counts = dict(Counter(problem['kind'] for problem in problems).most_common())
    rows = tabulate_classes([source.labels for source in sources if source.labels])
    data_sets = [_describe(source, prepared.is_bgr) for source in sources]
    return dict(data_sets=data_sets, classes=rows, counts=counts, problems=problems, warnings=warnings), sources


def _describe(source: Source, bgr: bool) -> dict[str, Any]:
    samples, reader = source.samples.values(), source.reader
    sizes = np.array([sample.size for sample in samples if sample.size is not None])
    lengths = [sample.num_frames for sample in samples if sample.num_frames]
    counts = source.labels.counts_by_name() if source.labels else {}
    facts = [f'{len(samples):,} samples'] + ['made in memory: no files to read'] * (not source.has_files)
    if len(sizes):
        small, large = ('x'.join(map(str, size)) for size in (sizes.min(axis=0), sizes.max(axis=0)))
        facts.append(f'{small} pixels' if small == large else f'{small} to {large} pixels')
    modes = Counter(sample.mode for sample in samples if sample.mode is not None)
    facts += [f'{number:,} {mode}' for mode, number in modes.most_common()]
    if lengths and reader.load_clips:
        facts.append(f'{min(lengths)} to {max(lengths)} frames')
        span = reader.load_clips.span
        facts.append(f'{sum(length < span for length in lengths):,} shorter than a clip, which spans {span}')
    if counts:
        fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        span = f'from {counts[fewest]:,} ({fewest}) to {counts[most]:,} ({most})'
        facts.append(f'{len(counts)} classes, {span if counts[fewest] < counts[most] else f"{counts[most]:,} each"}')
    line = printable(f'{source.split}: {reader.name}, {"; ".join(facts)}')
    colours = None if isinstance(reader.load_image, LoadBands) else 'BGR' if bgr or reader.load_image else 'RGB'
    channels = _describe_channels(samples, colours)
    return dict(split=source.split, samples=len(samples), line=line, classes=counts, channels=channels)


def _describe_channels(samples: Iterable[Sample], read_as: str | None) -> dict[str, Any] | None:
    """Return mean and standard deviation of each channel over the pixels of all images, of colours in RGB."""
    sums = [sample.sums for sample in samples if sample.sums is not None]
    if len({each.shape for each in sums}) != 1:
        return None
    read_as = read_as if sums[0].shape[1] == 3 else None
    number, total, squares = np.sum(sums, axis=0)[:, :: -1 if read_as == 'BGR' else 1]
    mean = total / number
    std = np.sqrt(np.maximum(squares / number - mean**2, 0))
    return dict(order=read_as and 'RGB', read_as=read_as, mean=mean.tolist(), std=std.tolist())
