"""Write the pages of this project from its measurements: ``python -m projects.speed.report``.

With ``--data`` and ``--page`` it writes the page on performance of other measurements.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from docs.reports.pages import fill_places
from vt.analysis.figures import save_figure
from vt.engine.reporting import one_line_errors
from vt.files import write_atomically

from . import performance, tables

TABLES = performance.FOLDER / 'tables.md'


def write_performance(data: Path, page: Path, figures: Path) -> None:
    """Write the page on performance and its figures, from a folder of measurements."""
    write_atomically(page, performance.render(data))
    figures.mkdir(exist_ok=True)
    for name, figure in performance.draw(data).items():
        save_figure(figure, figures / f'{name}.png', dpi=80)


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m projects.speed.report', description=__doc__.split(':')[0])
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    parser.add_argument('--data', type=Path, default=performance.MEASURED, help='folder of the measurements')
    parser.add_argument('--page', type=Path, default=performance.FOLDER / 'performance.md', help='page to write')
    return parser.parse_args(arguments)


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('report', args.traceback):
        write_performance(args.data, args.page, args.page.parent / 'figures')
        if args.data == performance.MEASURED:
            write_atomically(TABLES, fill_places(TABLES.read_text(), tables.PLACES))
