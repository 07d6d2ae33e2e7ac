"""Write the tables of this project's page: ``python -m projects.survey_claims.report``.

``python -m projects.survey_claims.report train TABLE ...`` trains the runs of ``runs.yml`` again before, all by
default; ``claims`` measures what structure and trained runs say to the claims.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from docs.reports.markdown import ROOT, table
from docs.reports.pages import fill_places
from docs.reports.records import write_measured
from docs.reports.scores import show_scores
from vt.engine.reporting import one_line_errors
from vt.files import write_atomically

from . import claims

PAGE = claims.FOLDER / 'README.md'
RUNS = ROOT / 'work_dirs/reproduce/survey-claims'
PLACES = {
    'scores': partial(show_scores, folder=claims.RECORDS, again=claims.AGAIN),
    'survey claims': lambda: table(claims.describe_claims(), dense=True),
}


def write_page(args: argparse.Namespace) -> None:
    """Write the page from the records."""
    write_atomically(PAGE, fill_places(PAGE.read_text(), PLACES))


def read_tables() -> dict[str, dict]:
    """The tables of ``runs.yml``."""
    return yaml.safe_load((claims.FOLDER / 'runs.yml').read_text())


def train_tables(args: argparse.Namespace) -> None:
    """Train tables again, write their records, then the page."""
    from docs.reports.train import train

    train(args, read_tables(), claims.RECORDS)
    write_page(args)


def measure(args: argparse.Namespace) -> None:
    """Measure what structure, and what runs there are, say to the claims."""
    measured = dict(costs=claims.measure_costs(), places=claims.measure_places())
    write_measured(claims.MEASURES, **measured, tokens=claims.measure_tokens(args.runs))


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m projects.survey_claims.report', description=write_page.__doc__)
    parser.set_defaults(function=write_page)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    commands = parser.add_subparsers(title='in place of that')
    train = commands.add_parser('train', help=train_tables.__doc__)
    train.set_defaults(function=train_tables)
    train.add_argument('tables', nargs='*', help='names in runs.yml (default: all)')
    train.add_argument('--jobs', type=int, help='runs at a time (default: as many as GPUs, or cores, are there)')
    claimed = commands.add_parser('claims', help=measure.__doc__)
    claimed.set_defaults(function=measure)
    claimed.add_argument('--runs', type=Path, default=RUNS, help=f'trained runs (default: {RUNS})')
    return parser.parse_args(arguments)


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('report', args.traceback):
        args.function(args)
