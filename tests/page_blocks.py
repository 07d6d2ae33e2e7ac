"""Run what a page tells a person to run, in order, in this folder: ``python tests/page_blocks.py PAGE``.

A block of bash or Python runs; one whose title is a file's name is that file's text. The Python blocks of a page share
their names. A block that can't run says why in its title, after ``NOT_RUN``, where a reader sees it too.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r'^( *)(```+)(\S*)(?: title="([^"]*)")?\n(.*?)^\1\2$', re.DOTALL | re.MULTILINE)
NOT_RUN = 'Not run by the tests: '


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title if it has one, its text, and the line of the page that it begins in."""

    language: str
    title: str
    text: str
    line: int

    @property
    def why_not(self) -> str | None:
        """Why it does not run, if so."""
        return self.title.removeprefix(NOT_RUN) if self.title.startswith(NOT_RUN) else None

    @property
    def runs(self) -> bool:
        """Whether it is run, or written to its file; text is what a person sees."""
        return self.language in ('bash', 'python') and self.why_not is None


def read_blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        _, _, language, title, content = match.groups()
        found.append(Block(language, title or '', content, text[: match.start()].count('\n') + 1))
    return found


def run_page(page: Path) -> None:
    """Run the blocks; an error of one ends it."""
    names = dict(__name__='__main__')
    for block in read_blocks(page):
        if not block.runs:
            continue
        print(f'== {page.name}:{block.line}', flush=True)
        if block.title:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language == 'bash':
            subprocess.run(['bash', '-euo', 'pipefail', '-c', block.text], check=True)
        else:
            exec(compile(block.text, f'{page.name}:{block.line}', 'exec'), names)


if __name__ == '__main__':
    run_page(Path(sys.argv[1]))
