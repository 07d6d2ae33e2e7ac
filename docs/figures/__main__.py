"""Draw the figures of the pages: ``python -m docs.figures``, or ``python -m docs.figures NAME ...`` for some.

They need the extra ``[tests]``, and Chromium with its driver. Runs that they show are trained first, in
``work_dirs/figures``, which takes a quarter of an hour.
"""

import argparse
import os
from pathlib import Path

import matplotlib

from docs.reports.markdown import ROOT

from . import data, drawing, measured, runs, screens

FOLDER = ROOT / 'docs/figures'
QUICK = measured.FIGURES | data.FIGURES  # without a training
FIGURES = QUICK | runs.FIGURES | screens.FIGURES
OTHERS = {  # what else pages show
    'docs/figures/rooms.svg': 'python -m docs.reports',
    'docs/figures/method.jpg': 'python docs/figures/method.py',
    'docs/reach.jpg': 'python -m projects.relations.attention reach',
}


def draw(name: str, folder: Path = FOLDER) -> Path:
    """Write a figure to a folder."""
    with matplotlib.rc_context(drawing.STYLE):
        drawing.save(FIGURES[name](), folder / name)
    return folder / name


if __name__ == '__main__':
    parser = argparse.ArgumentParser(prog='python -m docs.figures', description=__doc__)
    parser.add_argument(
        'names', nargs='*', metavar='NAME', help=f'figures to draw (default: all): {", ".join(FIGURES)}'
    )
    names = parser.parse_args().names or [*FIGURES]
    if unknown := {*names} - {*FIGURES}:
        parser.error(f'there is no figure {", ".join(sorted(unknown))}')
    os.chdir(ROOT)
    for name in names:
        print(f'written to {draw(name)}')
