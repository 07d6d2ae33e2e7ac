"""Pages as the site's renderer reads them, and what is wrong with them."""

import re
from html.parser import HTMLParser

import markdown
import yaml
from markdown_it import MarkdownIt
from tool_runner import ROOT

IGNORED = ('div', 'p', 'span')  # of which the renderers make different ones for the same look
UNREAD = re.compile(r'\||\]\(|\]\[|\*\*|```')  # Markdown that was not read
EXTENSIONS = yaml.safe_load((ROOT / 'mkdocs.yml').read_text())['markdown_extensions']
SITE = markdown.Markdown(extensions=[name for name in EXTENSIONS if isinstance(name, str)])
GITHUB = MarkdownIt('commonmark').enable('table')


class Page(HTMLParser):
    """The tags, links, places and text of a page; what is in code is not text."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.links, self.places, self.text = [], [], set(), ''
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ('href', 'src') if found.get(name)]
        self.places.add(found.get('id'))
        if tag not in IGNORED and 'pre' not in self._open:
            self.tags.append((self._open.count('li'), tag))
        self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if not {*self._open} & {'code', 'pre', 'script', 'style'}:
            self.text += data


def find_faults(text: str) -> list:
    """What of a page's Markdown the site reads otherwise than GitHub does, or shows as it is written."""
    site, github = Page(SITE.reset().convert(text)), Page(GITHUB.render(text))
    pairs = zip([*site.tags, None], [*github.tags, None], strict=False)
    return [pair for pair in pairs if pair[0] != pair[1]][:1] + UNREAD.findall(site.text)
