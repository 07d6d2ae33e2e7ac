"""Helpers for figures: grids of images, and files."""

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from vt.checkpoints.files import write_atomically
from vt.errors import UserError


def image_cells(figure: Figure | SubFigure, rows: int, columns: int) -> np.ndarray:
    """Return axes for images, ``(rows, columns)``, without ticks and frames."""
    axes = figure.subplots(rows, columns, squeeze=False)
    for cell in axes.flat:
        cell.set(xticks=[], yticks=[])
        cell.spines[:].set_visible(False)
    return axes


def save_figure(figure: Figure, path: str | Path, dpi: int = 100, follow: bool = False) -> None:
    """Write a figure to a file, in the format of its suffix; ``follow`` as in :func:`write_atomically`.

    Raises:
        UserError: the suffix is not a format of figures.
    """
    kind, kinds = Path(path).suffix[1:].lower(), FigureCanvasAgg.get_supported_filetypes()
    if kind not in kinds:
        raise UserError(f'{path}: a figure is written as .{", .".join(sorted(kinds))}')
    write_atomically(path, render_figure(figure, kind, dpi), follow)


def render_figure(figure: Figure, kind: str = 'png', dpi: int = 100) -> bytes:
    """Return the content of an image file of a figure, in a format such as ``'png'``."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=dpi)
    return content.getvalue()
