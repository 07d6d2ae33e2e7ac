"""All pages: what stands in each, from the records and measurements in ``docs``."""

from . import ablations, measured, model_pages, mvit, performance, rooms, scores, survey, where
from .markdown import BENCHMARKS, ROOT

# What takes the text of a page and gives it with its generated places written.
PAGES = {
    'README.md': performance.render_readme,
    'docs/export.md': measured.render_exports,
    'docs/kernels.md': measured.render_kernels,
    'docs/mvit.md': mvit.render,
    'docs/survey.md': survey.render,
    'docs/where.md': where.render,
}


def render() -> dict[str, str]:
    """The texts of all generated files by their paths in the repository; nothing is written.

    Raises:
        MissingFileError: a record or a measurement is not there.
        UserError: a page lacks a mark.
    """
    paths = ['README.md', *(str(path.relative_to(ROOT)) for path in sorted((ROOT / 'docs').glob('*.md')))]
    texts = {path: measured.render_attention(scores.render((ROOT / path).read_text())) for path in paths}
    texts |= {path: function(texts[path]) for path, function in PAGES.items()}
    texts[rooms.PATH] = rooms.draw(rooms.read_rooms())
    texts['docs/performance.md'] = performance.render(BENCHMARKS)
    texts |= {path.relative_to(ROOT).as_posix(): text for path, text in model_pages.render().items()}
    return texts | ablations.render(texts['docs/ablations.md']) | scores.render_headers()
