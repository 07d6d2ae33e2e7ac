"""What MkDocs makes of this folder besides its pages: the overview from README.md, every tool's arguments, the source.

Links to code lead to the files themselves, as they do where the repository is read; a site has no such files, so each
that a page links to becomes a page.
"""

import contextlib
import io
import os
import re
import runpy
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r'(?<=\]\()(?!\w+:|#)([^)\s#]+)')  # the file of [text](file#place)
ROLE = re.compile(r':(?:class|func|meth|mod):<code>([\w.]+)</code>')  # as docstrings name other objects
LANGUAGES = {'.py': 'python', '.sh': 'bash', '.yml': 'yaml', '.json': 'json', '.md': 'markdown'}
COLUMNS = '88'  # of the text of --help


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the overview, the arguments of every tool, and a page for each file and folder of code that a page shows."""
    files.append(File.generated(config, 'index.md', content=(ROOT / 'README.md').read_text().replace('](docs/', '](')))
    files.append(File.generated(config, 'tools.md', content=describe_tools()))
    for page in files.documentation_pages():
        for place in filter(None, (source_of(link, page.src_uri) for link in LINK.findall(page.content_string))):
            if files.get_file_from_path(page_of(place)) is None:
                inclusion = InclusionLevel.NOT_IN_NAV
                files.append(File.generated(config, page_of(place), content=show(place), inclusion=inclusion))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to code lead to the pages that show it."""

    def redirect(link: re.Match) -> str:
        place = source_of(link[0], page.file.src_uri)
        return os.path.relpath(page_of(place), Path(page.file.src_uri).parent) if place else link[0]

    return LINK.sub(redirect, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """What a docstring names is a link where it stands on one of the pages."""
    return ROLE.sub(r'<autoref identifier="\1" optional><code>\1</code></autoref>', html)


def source_of(link: str, page: str) -> Path | None:
    """The file or folder of the repository that a page's link leads to, where it is none of the site's own files."""
    folder = ROOT if page == 'index.md' else ROOT / 'docs' / Path(page).parent
    place = Path(os.path.normpath(folder / link))
    is_own = place.is_relative_to(ROOT / 'docs') and not place.is_dir()
    return None if is_own or not place.exists() else place.relative_to(ROOT)


def page_of(place: Path) -> str:
    """Where the page stands that shows a file or folder."""
    return f'source/{place}.md' if place.suffix else f'source/{place}/index.md'


def show(place: Path) -> str:
    """The page of a file, its text, or of a folder, a list of what is in it."""
    path = ROOT / place
    head = f'---\nsearch:\n  exclude: true\nhide: [toc]\n---\n# `{place}`\n\n'
    if path.is_dir():
        names = sorted(f'{child.name}{"/" * child.is_dir()}' for child in path.iterdir() if child.name[0] not in '._')
        return head + '\n'.join(f'- `{name}`' for name in names)
    return head + f'`````{LANGUAGES.get(path.suffix, "text")}\n{path.read_text()}`````\n'


def describe_tools() -> str:
    """Return a page with the output of ``--help`` of each tool, or the comment at the head of a script."""
    parts = ['# Command-line tools\n\nThe output of `--help`, or the head of a script: [examples](commands.md).']
    tools = ROOT / 'tools'
    for path in [*sorted(tools.iterdir()), *sorted((tools / 'analysis').iterdir())]:
        if path.suffix == '.py':
            text = read_help(path)
            commands = re.search(r'\{([\w,]+)\}\s+\.\.\.', text)
            texts = [text, *(read_help(path, name) for name in (commands[1].split(',') if commands else ()))]
        elif path.suffix == '.sh':
            lines = path.read_text().splitlines()[1:]
            last = next(number for number, line in enumerate(lines) if not line.startswith('#'))
            texts = ['\n'.join(line.removeprefix('#').removeprefix(' ') for line in lines[:last])]
        else:
            continue
        parts.append(f'## {path.relative_to(ROOT)}\n' + '\n'.join(f'```text\n{text.strip()}\n```' for text in texts))
    return '\n\n'.join(parts)


def read_help(path: Path, *command: str) -> str:
    """What a tool prints with ``--help``; it is read in this process, for that needs none of the libraries."""
    text, arguments, columns = io.StringIO(), sys.argv, os.environ.get('COLUMNS')
    sys.argv, os.environ['COLUMNS'] = [str(path.relative_to(ROOT)), *command, '--help'], COLUMNS
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            runpy.run_path(str(path), run_name='__main__')
    finally:
        sys.argv = arguments
        os.environ.pop('COLUMNS') if columns is None else os.environ.update(COLUMNS=columns)
    return text.getvalue()
