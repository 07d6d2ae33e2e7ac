"""Write the tables and figures of this project's pages: ``python -m projects.relations.report``.

``python -m projects.relations.report train TABLE ...`` trains the runs of ``runs.yml`` again before; all by default.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from docs.reports.ablations import draw
from docs.reports.pages import fill_places
from vt.analysis.figures import save_figure
from vt.engine.reporting import one_line_errors
from vt.files import write_atomically

from . import tables

PAGES = [tables.FOLDER / f'{name}.md' for name in ('README', 'ablations', 'recipe')]


def write_pages() -> None:
    """Write the pages and their figures from the records."""
    for page in PAGES:
        write_atomically(page, fill_places(page.read_text(), tables.PLACES))
    for name, figure in tables.draw().items():
        save_figure(figure, tables.FOLDER / f'figures/{name}.png', dpi=80)
    save_figure(draw(tables.read_compared()), tables.FOLDER / 'figures/changes.png')


def read_runs_file() -> dict[str, dict]:
    """The tables of ``runs.yml``."""
    return yaml.safe_load((tables.FOLDER / 'runs.yml').read_text())


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m projects.relations.report', description=__doc__.split(':')[0])
    parser.set_defaults(tables=None)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    train = parser.add_subparsers().add_parser('train', help='train tables again, write their records, then the pages')
    train.add_argument('tables', nargs='*', help='names in runs.yml (default: all)')
    train.add_argument('--jobs', type=int, help='runs at a time (default: as many as GPUs, or cores, are there)')
    return parser.parse_args(arguments)


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('report', args.traceback):
        if args.tables is not None:
            from docs.reports.train import train

            os.environ['PYTHONPATH'] = os.pathsep.join([str(Path.cwd()), os.environ.get('PYTHONPATH', '')])  # of tools/
            train(args, read_runs_file(), tables.RECORDS)
        write_pages()
