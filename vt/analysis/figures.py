"""Helpers for figures: grids of images, files, and images of pages."""

import base64
import io
import warnings
from pathlib import Path

import cv2
import numpy as np
from matplotlib.figure import Figure, SubFigure

from vt.files import write_atomically


def image_cells(figure: Figure | SubFigure, rows: int, columns: int) -> np.ndarray:
    """Return axes for images, ``(rows, columns)``, without ticks and frames."""
    axes = figure.subplots(rows, columns, squeeze=False)
    for cell in axes.flat:
        cell.set(xticks=[], yticks=[])
        cell.spines[:].set_visible(False)
    return axes


def save_figure(figure: Figure, path: str | Path, dpi: int = 100) -> None:
    """Write a figure to a file, in the format of its suffix."""
    write_atomically(path, _render(figure, Path(path).suffix[1:], dpi))


def _render(figure: Figure, kind: str, dpi: int) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=dpi)
    return content.getvalue()


def shrink(image: np.ndarray, side: int) -> np.ndarray:
    """Resize an image so that its longer side has this number of pixels; small images are enlarged."""
    scale = side / max(image.shape[:2])
    size = [max(1, round(scale * each)) for each in image.shape[1::-1]]
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)


def figure_address(figure: Figure) -> str:
    """Return a figure as a data URL."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)  # about characters that are missing in the font
        return _address(_render(figure, 'png', dpi=90), 'png')


def image_address(image: np.ndarray) -> str:
    """Return an RGB image ``(height, width, 3)`` of uint8 as a data URL."""
    return _address(cv2.imencode('.jpg', image[..., ::-1])[1].tobytes(), 'jpeg')


def _address(content: bytes, kind: str) -> str:
    return f'data:image/{kind};base64,{base64.b64encode(content).decode()}'
