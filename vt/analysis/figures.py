"""Figures as files."""

import io
from pathlib import Path

from matplotlib.figure import Figure

from vt.checkpoints.files import write_atomically


def save_figure(figure: Figure, path: str | Path, dpi: int = 100) -> None:
    """Write a figure in the format that the file's name ends in."""
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix[1:].lower(), dpi=dpi)
    write_atomically(path, content.getbuffer())
