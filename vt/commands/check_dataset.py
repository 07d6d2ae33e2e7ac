"""Command of ``tools/check_dataset.py``: read all data of a config once."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import joblib
from mmengine.config import Config
from rich.console import Console

from vt.analysis.tables import print_table
from vt.data_checks.data import Source
from vt.data_checks.data_report import read_data
from vt.data_checks.samples import Problem
from vt.engine.checks.channels import TURNS, preprocessor_of
from vt.engine.checks.config import check_config
from vt.engine.config_parts import dicts_in
from vt.engine.image_hooks import reads_bgr
from vt.engine.imbalance import pixel_weights
from vt.engine.prepare import read_config
from vt.errors import UserError
from vt.untrusted_text import printable

from .data_page import write_page
from .outputs import check_output, write_json

UNEVEN = 3  # ratio of samples, or pixels, of the largest and the smallest class from which imbalance is reported
SHOWN = 50  # problems on the console, or rows of the table; --out has all


def check_dataset(args: argparse.Namespace) -> None:
    """Print a description of the data and their problems, and write them to ``--out``; exit with 1 on problems.

    ``--out`` is a JSON file or, without a suffix, a folder for ``data.json`` and a page, ``index.html``.

    Raises:
        UserError: the config is wrong or does not exist.
    """
    folder = Path(args.out) if args.out and (Path(args.out).is_dir() or not Path(args.out).suffix) else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f'{folder} is a file: give the name of a folder, or of a file that ends in .json')
    check_output(folder / 'data.json' if folder and folder.is_dir() else args.out, args.config)
    cfg = read_config(args.config, args.cfg_options)
    check_config(cfg, args.cfg_options or {})
    if args.workers is not None and args.workers < 1:
        raise UserError(f'--workers {args.workers} must be at least 1')
    report, sources = read_data(cfg, tuple(args.splits), args.workers or joblib.cpu_count())
    print_report(report)
    print_channels(report, cfg)
    print_imbalance(sources, cfg)
    if folder is not None:
        folder.mkdir(exist_ok=True)
        write_json(report, folder / 'data.json')
        lines = [*map(describe_data_set, report['data_sets'])]
        write_page(folder / 'index.html', args.config, report, sources, lines, reads_bgr(cfg))
        print(f'written to {folder}')
    elif args.out:
        write_json(report, args.out, follow=True)
    if report['problems']:
        sys.exit(1)


def print_report(report: dict) -> None:
    """Print the data sets, the first problems, and the number of each kind."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    problems = report['problems']
    for data_set in report['data_sets']:
        console.print(describe_data_set(data_set))
    if 1 < len(report['classes']) <= SHOWN:
        print_table(report['classes'], 'Classes, and their samples (pixels of masks) in each split')
    for problem in (*problems[:SHOWN], *report['warnings'][:SHOWN]):
        where = Problem(**{name: value for name, value in problem.items() if name != 'split'})
        level = 'warning: ' if problem in report['warnings'] else ''
        console.print(printable(f'{level}{problem["split"]}: {where}'))
    if len(problems) > SHOWN:
        console.print(f'... and {len(problems) - SHOWN} more; --out FILE has them all')
    counts = ', '.join(f'{number} {kind}' for kind, number in report['counts'].items())
    warnings = f' {len(report["warnings"])} warnings.' if report['warnings'] else ''
    console.print((f'{len(problems)} problems: {counts}.' if counts else 'No problem found.') + warnings)


def print_channels(report: dict, cfg: Config) -> None:
    """Print mean and standard deviation of the training images, in the form of the config's ``data_preprocessor``."""
    found = next((each['channels'] for each in report['data_sets'] if each['split'] == 'train'), None)
    if found:
        is_turned = len(found['mean']) == 3 and any(preprocessor_of(cfg).get(turn) for turn in TURNS)
        numbers = {
            name: [round(value, 3) for value in values[:: -1 if is_turned else 1]] for name, values in found.items()
        }
        print(f'training images: data_preprocessor = dict(mean={numbers["mean"]}, std={numbers["std"]})')


def print_imbalance(sources: Sequence[Source], cfg: Config) -> None:
    """Print config lines that weight the training classes, if their sizes differ by a factor of ``UNEVEN``."""
    own = [source.labels for source in sources if source.split == 'train' and source.labels and source.labels.names]
    counts = sum((labels.counts for labels in own), Counter())
    found = [counts[label] for label in range(len(own[0].names)) if counts[label]] if own else []
    if not found or max(found) < UNEVEN * min(found) or cfg.get('imbalance'):
        return
    line = "imbalance = 'weighted', or 'balanced', or 'focal'"
    if own[0].masks:
        weights = pixel_weights(counts, len(own[0].names))
        losses = (cfg.model.get('decode_head') or {}).get('loss_decode')
        by_sigmoid = any(loss.get('use_sigmoid') for loss in dicts_in(losses))
        line = f'model = dict(decode_head=dict(loss_decode=dict(class_weight={weights})))'
        if isinstance(losses, (list, tuple)):
            line = f'class_weight={weights} in the cross-entropy of model.decode_head.loss_decode'
        if by_sigmoid:  # MMSegmentation has no weights of classes for it
            line = 'the loss has a sigmoid, for which there are no weights: use a softmax for them'
    times = f'{max(found) / min(found):,.0f} times the samples of the rarest'
    print(f'training classes: the most frequent has {times}: {line}')


def describe_data_set(data_set: dict) -> str:
    """Return one line that describes a data set."""
    facts, small, videos = [f'{data_set["samples"]:,} samples'], data_set['smallest'], data_set['videos']
    if not data_set['files']:
        facts.append('made in memory: no files to read')
    if small:
        small, large = ('x'.join(map(str, size)) for size in (small, data_set['largest']))
        facts.append(f'{small} pixels' if small == large else f'{small} to {large} pixels')
    facts += [f'{number:,} {mode}' for mode, number in data_set['modes'].items()]
    if videos and videos['most_frames']:
        facts.append(f'{videos["fewest_frames"]} to {videos["most_frames"]} frames')
        facts += [f'{number:,} at {fps} frames/s' for fps, number in videos['fps'].items()]
        facts.append(f'{videos["shorter_than_span"]:,} shorter than a clip, which spans {videos["span"]}')
    if classes := data_set['classes']:
        fewest, most = min(classes, key=classes.get), max(classes, key=classes.get)
        facts.append(f'{len(classes)} classes, from {classes[fewest]:,} ({fewest}) to {classes[most]:,} ({most})')
    for folder in data_set['folders']:
        left_out = sum(reason['number'] for reason in folder['left_out'].values())
        facts.append(f'{folder["used"]:,} of {folder["used"] + left_out:,} files of {folder["folder"]} used')
    return printable(f'{data_set["split"]}: {data_set["type"]}, {"; ".join(facts)}')
