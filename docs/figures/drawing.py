"""What all figures share: their size, colours and files."""

import io
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from vt.errors import UserError
from vt.files import write_atomically

WIDTH, DPI = 8, 140  # inches, and pixels an inch
MOST_PIXELS, MOST_BYTES = 1200, 150_000  # of a figure's width and file
BLUE, ORANGE, GREY, DARK = '#3367b0', '#e07b2f', '#a3a9b3', '#30353d'
STYLE = {
    'font.family': 'DejaVu Sans',  # comes with matplotlib
    'font.size': 10,
    'text.color': DARK,
    'axes.labelcolor': DARK,
    'axes.edgecolor': GREY,
    'axes.titlesize': 10.5,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.prop_cycle': matplotlib.cycler(color=[BLUE, ORANGE, GREY]),
    'xtick.color': DARK,
    'ytick.color': DARK,
    'legend.frameon': False,
}


def new_figure(height: float) -> Figure:
    """A white figure of the pages' width; it is readable on dark pages, too."""
    return Figure(figsize=(WIDTH, height), dpi=DPI, layout='constrained')


def show_image(axes: Axes, image: np.ndarray, title: str = '', side: str = '', **options) -> None:
    """An image without axes, with a text above it and one at its left side."""
    axes.imshow(image, **options)
    axes.set(xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)
    axes.set_ylabel(side, rotation=0, ha='right', va='center', labelpad=8)


def image_grid(figure: Figure | SubFigure, rows: list[list[np.ndarray]], titles: list, sides: list, **options) -> None:
    """Rows of images with texts above the columns and beside the rows."""
    cells = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for number, (row, side) in enumerate(zip(rows, sides)):
        for column, (image, title) in enumerate(zip(row, titles)):
            show_image(cells[number, column], image, '' if number else title, '' if column else side, **options)


def save(drawn: Figure | Image.Image, path: Path) -> None:
    """Write a figure or an image in the format of the path's suffix.

    Raises:
        UserError: it is too large for a page.
    """
    if isinstance(drawn, Figure):
        content = io.BytesIO()
        drawn.savefig(content, format='png')
        drawn = Image.open(content)
    drawn, content = drawn.convert('RGB'), io.BytesIO()
    if path.suffix == '.png':
        drawn.quantize(256, dither=Image.Dither.NONE).save(content, 'PNG', optimize=True)
    else:
        drawn.save(content, 'JPEG', quality=80, optimize=True)
    if drawn.width > MOST_PIXELS or content.tell() > MOST_BYTES:
        raise UserError(f'{path} would have {drawn.width} pixels in a row and {content.tell():,} bytes')
    write_atomically(path, content.getvalue())
