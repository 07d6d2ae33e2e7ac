"""Figures of the pages: each that a page shows is drawn by a script, and each that it draws is shown."""

import re

import numpy as np
import pytest
from PIL import Image
from tool_runner import ROOT

from docs.figures.__main__ import FIGURES, FOLDER, OTHERS, QUICK, draw
from docs.figures.drawing import MOST_BYTES, MOST_PIXELS

SHOWN = re.compile(r'!\[([^\]]*)\]\(([^)\s]+)\)\n(?:\n\*([^*\n]+)\*\n)?')


def read_shown(*folders):
    """Of each figure of pages: its page, its path in the repository, its alternative text and its caption."""
    pages = [page for folder in folders for page in sorted((ROOT / folder).glob('*.md'))]
    for page in pages:
        for alternative, link, caption in SHOWN.findall(page.read_text()):
            path = (page.parent / link).resolve().relative_to(ROOT).as_posix()
            yield page.name, path, alternative, caption


def test_pages_show_the_figures_of_the_script_and_no_others():
    paths = {path for _, path, _, _ in read_shown('', 'docs', 'docs/how-to')}
    assert paths == {f'docs/figures/{name}' for name in FIGURES} | {*OTHERS}
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    files = [path for path in (ROOT / 'docs').rglob('*.*') if path.suffix in ('.png', '.jpg', '.webp', '.svg')]
    assert {path.relative_to(ROOT).as_posix() for path in files} - {'docs/figures/china.jpg'} == paths


def test_at_least_ten_how_to_pages_have_a_figure_with_texts():
    shown = [*read_shown('docs/how-to')]
    assert len({page for page, *_ in shown}) >= 10
    assert [row for row in shown if len(row[2]) < 15 or len(row[3]) < 15] == []


@pytest.mark.parametrize('name', FIGURES)
def test_a_figure_fits_a_page(name):
    assert (FOLDER / name).stat().st_size <= MOST_BYTES
    assert Image.open(FOLDER / name).width <= MOST_PIXELS


@pytest.mark.slow
@pytest.mark.parametrize('name', QUICK)
def test_a_figure_shows_the_committed_data(name, tmp_path):
    committed, drawn = (
        np.asarray(Image.open(path).convert('RGB'), int) for path in (FOLDER / name, draw(name, tmp_path))
    )
    assert committed.shape == drawn.shape
    assert np.abs(committed - drawn).mean() < 1
