"""Read all data of a config once, as ``tools/check_dataset.py`` asks."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

import joblib
from rich.console import Console

from vt.analysis.tables import print_table
from vt.engine.checks.config import check_config
from vt.engine.checks.data_report import read_data
from vt.engine.checks.samples import Problem
from vt.engine.config_files import read_config
from vt.errors import UserError
from vt.untrusted_text import printable

from .outputs import check_output, write_json

SHOWN = 50  # problems on the console, or rows of the table; --out has all
# The checks, and the kinds of problems that each finds.
CHECKS = {
    'files': ('missing', 'unreadable', 'mode', 'size', 'empty', 'not read'),
    'annotations': ('annotation',),
    'labels': ('label',),
    'classes': ('classes', 'one class', 'order'),
    'files left out': ('left out',),
    'samples of each class': ('no samples', 'few samples'),
    'duplicates between splits': ('duplicate',),
}


def check_dataset(args: argparse.Namespace) -> None:
    """Print, and write on request, what is wrong with the data and what they are; exit with 1 if anything is wrong.

    Raises:
        UserError: the config is wrong, or not there.
    """
    check_output(args.out, args.config)
    cfg = read_config(args.config, args.cfg_options)
    check_config(cfg, args.cfg_options or {})
    if args.workers is not None and args.workers < 1:
        raise UserError(f'--workers {args.workers} must be at least 1')
    report = read_data(cfg, tuple(args.splits), args.workers or joblib.cpu_count())
    print_report(report)
    if args.out:
        write_json(report, args.out)
    if report['problems']:
        sys.exit(1)


def print_report(report: dict) -> None:
    """Print data sets, the first problems and how many there are of each kind."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    problems = report['problems']
    for data_set in report['data_sets']:
        console.print(printable('; '.join(_describe_data_set(**data_set))))
    if 1 < len(report['classes']) <= SHOWN:
        print_table(report['classes'], 'Classes, and their samples (pixels of masks) in each split')
    for problem in (*problems[:SHOWN], *report['warnings'][:SHOWN]):
        where = Problem(**{name: value for name, value in problem.items() if name != 'split'})
        level = 'warning: ' if problem in report['warnings'] else ''
        console.print(printable(f'{level}{problem["split"]}: {where}'))
    if len(problems) > SHOWN:
        console.print(f'... and {len(problems) - SHOWN} more; --out FILE has them all')
    counts = ', '.join(f'{number} {kind}' for kind, number in report['counts'].items())
    for check, kinds in CHECKS.items():
        found = Counter(problem['kind'] for problem in (*problems, *report['warnings']) if problem['kind'] in kinds)
        verdict = ', '.join(f'{number:,} {kind}' for kind, number in found.items())
        console.print(f'{check}: {verdict or "nothing wrong"}')
    warnings = f' {len(report["warnings"])} warnings.' if report['warnings'] else ''
    console.print((f'{len(problems)} problems: {counts}.' if counts else 'No problem found.') + warnings)


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
    folders: list,
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
    for folder in folders:
        left_out = sum(reason['number'] for reason in folder['left_out'].values())
        yield f'{folder["used"]:,} of {folder["used"] + left_out:,} files of {folder["folder"]} used'
