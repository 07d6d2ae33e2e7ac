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
from vt.data_checks.data_report import in_line, read_data
from vt.engine.checks.channels import TURNS, preprocessor_of
from vt.engine.checks.config import check_config
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
        folder.mkdir(parents=True, exist_ok=True)
        write_json(report, folder / 'data.json')
        write_page(folder / 'index.html', args.config, report, sources, reads_bgr(cfg))
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
        console.print(data_set['line'])
    if 1 < len(report['classes']) <= SHOWN:
        print_table(report['classes'], 'Classes, and their samples (pixels of masks) in each split')
    for problem in (*problems[:SHOWN], *report['warnings'][:SHOWN]):
        level = 'warning: ' if problem in report['warnings'] else ''
        console.print(printable(level + in_line(problem)))
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
    if own[0].masks:  # MMSegmentation has no weights of classes for a sigmoid
        line = f'class_weight={pixel_weights(counts, len(own[0].names))} for a softmax in model.decode_head.loss_decode'
    times = f'{max(found) / min(found):,.0f} times the samples of the rarest'
    print(f'training classes: the most frequent has {times}: {line}')
