"""Write the pages of the site to build/pages, from where MkDocs or another builder makes the site: python -m docs.site.

Pages are README.md, those of this folder and of projects, and what they link to. Links to code lead to the files
themselves, as they do where the repository is read; on the site each such file becomes a page.
"""

import contextlib
import io
import os
import re
import runpy
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / 'build/pages'
CODE = re.compile(r'(^ *```.*?^ *```$|`[^`\n]+`)', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(?<=\]\()(?!\w+:|#)[^)\s#]+')  # the file of [text](file#place)
LANGUAGES = {'.py': 'python', '.sh': 'bash', '.yml': 'yaml'}
COPIED = ('.css', '.ipynb', '.jpg', '.json', '.png', '.svg')


def main() -> None:
    """Write all pages again."""
    shutil.rmtree(PAGES, ignore_errors=True)
    added: set[Path] = set()
    for place in ('README.md', 'docs/wide.css', 'docs/**/*.md', 'projects/*/README.md'):
        for path in ROOT.glob(place):
            add(path, added)
    (PAGES / 'tools.md').write_text(describe_tools())


def add(path: Path, added: set[Path]) -> None:
    """Write the page of a file or folder, and the pages of what it links to."""
    if path in added:
        return
    added.add(path)
    page = PAGES / page_of(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in COPIED:
        shutil.copyfile(path, page)
    elif path.suffix != '.md':
        page.write_text(show(path))
    else:
        parts, links = CODE.split(path.read_text()), {}
        for link in LINK.findall('\n'.join(parts[::2])):
            place = Path(os.path.normpath(path.parent / link))
            place = place / 'README.md' if (place / 'README.md').exists() else place
            if place.exists():
                add(place, added)
                links[link] = os.path.relpath(page_of(place), page_of(path).parent)
        parts[::2] = (LINK.sub(lambda link: links.get(link[0], link[0]), part) for part in parts[::2])
        page.write_text(''.join(parts))


def page_of(path: Path) -> Path:
    """Where the page of a file or folder is in the folder of pages."""
    place = path.relative_to(ROOT)
    if path.is_dir():
        return 'source' / place / 'index.md'
    if path.suffix in ('.md', *COPIED):
        return place.relative_to('docs') if place.is_relative_to('docs') else place
    return Path(f'source/{place}.md')


def show(path: Path) -> str:
    """The page of a file of code, its text, or of a folder, a list of what is in it."""
    head = f'---\nsearch:\n  exclude: true\nhide: [toc]\n---\n# `{path.relative_to(ROOT)}`\n\n'
    if path.is_dir():
        names = sorted(f'{child.name}{"/" * child.is_dir()}' for child in path.iterdir() if child.name[0] not in '._')
        return head + '\n'.join(f'- `{name}`' for name in names)
    return f'{head}`````{LANGUAGES.get(path.suffix, "text")}\n{path.read_text()}`````\n'


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
    text = io.StringIO()
    sys.argv, os.environ['COLUMNS'] = [str(path.relative_to(ROOT)), *command, '--help'], '88'
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        runpy.run_path(str(path), run_name='__main__')
    return text.getvalue()


if __name__ == '__main__':
    main()
