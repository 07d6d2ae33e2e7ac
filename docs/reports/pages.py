"""All pages: what stands in each, from the records and measurements in ``docs``."""

import re
from collections.abc import Callable

from . import benchmark, measured, model_pages, mvit, public_weights, rooms, scores, settings, survey
from .markdown import ROOT, insert

# What writes a generated place of a page, by how its mark begins; the rest of the mark is its argument.
PLACES = {
    name: write
    for module in (benchmark, measured, mvit, public_weights, scores, settings, survey)
    for name, write in module.PLACES.items()
}
FOLDERS = 'configs', 'docs', 'docs/how-to', 'projects/small_data', 'tests/checkpoints'
MARK = re.compile(r'^<!-- end of (.+) -->$', re.MULTILINE)


def render() -> dict[str, str]:
    """The texts of all generated files by their paths in the repository; nothing is written.

    Raises:
        MissingFileError: a record or a measurement is not there.
        UserError: a page lacks a mark.
    """
    pages = [
        ROOT / 'README.md',
        *(page for place in FOLDERS for page in sorted((ROOT / place).glob('*.md'))),
    ]
    texts = {path.relative_to(ROOT).as_posix(): fill_places(path.read_text()) for path in pages}
    texts[rooms.PATH] = rooms.draw(rooms.read_rooms())
    texts |= {path.relative_to(ROOT).as_posix(): text for path, text in model_pages.render().items()}
    return texts | scores.render_headers()


def fill_places(page: str, places: dict[str, Callable[..., str]] = PLACES) -> str:
    """A page with its generated places written."""
    for mark in MARK.findall(page):
        name = find_place(mark, places)
        page = insert(page, mark, places[name](*filter(None, [mark.removeprefix(name).strip()])))
    return page


def find_place(mark: str, places: dict[str, Callable[..., str]] = PLACES) -> str:
    """The name of what writes behind a mark."""
    return next(name for name in places if f'{mark} '.startswith(f'{name} '))
