"""The site of these pages: it is built without a warning, and what its how-to pages tell a person to run, runs."""

import html
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from apis.published_files import put_in_hub, put_in_torch_home
from browser import open_browser, show_as
from page_blocks import read_blocks, run_page
from site_pages import UNREAD, Page, find_faults
from tool_runner import ROOT, call, succeed

import vt
from vt import apis, datasets, models, video

NAVIGATION = yaml.safe_load((ROOT / 'mkdocs.yml').read_text())['nav']
BUILD = 'python -m docs.site && mkdocs build --strict'


def pages_of(entry):
    """The pages of a part of the navigation: a list of entries, a title with what it is of, or a page alone."""
    if isinstance(entry, dict):
        entry = [*entry.values()]
    return [entry] if isinstance(entry, str) else [page for each in entry for page in pages_of(each)]


PAGES = pages_of(NAVIGATION)
HOW_TO = [page for page in PAGES if page.startswith('how-to/') or page == 'explore.md']
LEFT_OUT = ('.git', '.venv', '.cache', 'work_dirs', '__pycache__', '*.egg-info', 'tests', 'data', 'site')


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp('site')
    for place in ('mkdocs.yml', 'CONTRIBUTING.md'):
        assert BUILD in (ROOT / place).read_text()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH=str(ROOT), NO_MKDOCS_2_WARNING='1')
    command = ['bash', '-c', f'{BUILD} --site-dir "$0"', folder]
    result = succeed(subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True))
    assert 'WARNING' not in result.stderr
    return folder


@pytest.fixture(scope='module')
def pages(site):
    """The pages that are read, without those that list code, by their paths in the site."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob('*.html')}
    pages = {path: page for path, page in pages.items() if not path.startswith(('source/', '404'))}
    assert len(pages) > 100
    return pages


def test_no_page_is_shown_as_it_is_written(pages):
    written = [path for path in (ROOT / 'build/pages').rglob('*.md') if 'source' not in path.parts]
    assert {path: found for path in written if (found := find_faults(path.read_text()))} == {}
    assert [path for path, page in pages.items() if UNREAD.search(page.text)] == []  # what docstrings say, too


@pytest.mark.parametrize(
    'fault',
    [
        'a\n- b',
        'a\n1. b',
        '- a\n  - b',
        'a\n|b|\n|---|',
        '|a|\n|1|',
        '```\na',
        '[a](b',
        '[a][b]',
        '**a',
        '- a\n```\nb\n```',
    ],
)
def test_markdown_that_the_site_would_not_read_is_found(fault):
    assert find_faults(f'# Page\n\n{fault}\n')


def test_every_link_and_image_leads_somewhere(site, pages):
    for path, page in pages.items():
        for link in (link for link in page.links if not urlsplit(link).scheme):
            place, _, anchor = link.partition('#')
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(place))) if place else path
            assert (site / goal).is_file(), (path, link)
            assert not anchor or goal not in pages or unquote(anchor) in pages[goal].places, (path, link)


def test_search_finds_every_page(site, pages):
    index = json.loads((site / 'search/search_index.json').read_text())['docs']
    titles = {entry['location']: entry['title'] for entry in index if '#' not in entry['location']}
    assert titles.keys() == pages.keys()
    assert all(titles.values())
    assert len({*titles.values()}) == len(titles)


@pytest.mark.slow
def test_no_page_scrolls_sideways_on_a_phone(site, pages):
    with open_browser() as browser:
        show_as(browser, 390, 'light')
        for path in pages:
            browser.get((site / path).as_uri())
            widths = browser.execute_script(
                'const root = document.documentElement; return [root.scrollWidth, innerWidth]'
            )
            assert widths == [390, 390], path


def test_nothing_is_fetched_from_elsewhere(site):
    away = re.compile(
        r'<(?:script|img|iframe|source)[^>]* src="?(?:https?:)?//|<link [^>]*href="?(?:https?:)?//'
        r'|url\(["\']?(?:https?:)?//'
    )
    pages = [path for path in site.rglob('*.*') if path.suffix in ('.html', '.css')]
    assert len(pages) > 30
    assert [path for path in pages if away.search(path.read_text())] == []


def test_every_public_name_is_on_its_page(site):
    for room in (apis, datasets, models, video):
        text = (site / f'api/{room.__name__.split(".")[1]}.html').read_text()
        assert [name for name in room.__all__ if f'id="{room.__name__}.{name}"' not in text] == []
    assert vt.VTFPN.__doc__.splitlines()[0][:20] in (site / 'api/models.html').read_text()


def test_every_tool_is_there_with_its_arguments(site, monkeypatch):
    text = (site / 'tools.html').read_text()
    folders = (sorted((ROOT / folder).iterdir()) for folder in ('tools', 'tools/analysis'))
    tools = [str(path.relative_to(ROOT)) for paths in folders for path in paths if path.suffix in ('.py', '.sh')]
    assert re.findall(r'<h2 id="[^"]*">(tools/[\w./]+)', text) == tools
    monkeypatch.setenv('COLUMNS', '88')
    printed = call('analysis/report.py', 'scores', '--help', cwd=ROOT).stdout
    assert printed.split('positional arguments')[1].strip() in html.unescape(re.sub(r'<[^>]+>', '', text))


def test_every_block_of_a_how_to_page_runs_or_says_why_not():
    for page in HOW_TO:
        text = (ROOT / 'docs' / page).read_text()
        blocks = read_blocks(ROOT / 'docs' / page)
        assert 2 * len(blocks) == sum(line.lstrip().startswith('```') for line in text.splitlines()), page
        assert any(block.language in ('bash', 'python') and not block.why_not for block in blocks), page
        for block in blocks:
            assert block.language in ('bash', 'python', 'text'), (page, block)
            names_file = block.language == 'python' and block.title.endswith('.py')
            assert not block.title or names_file or len(block.why_not or '') > 20, (page, block)


@pytest.mark.parametrize('wrong', ['bash\nfalse\ntrue', 'bash\nfalse | cat', 'python\nnames["none"]'])
def test_a_block_that_fails_ends_its_page(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = 'python title="a/b.py"\nx = 1', 'python\nnames = {}', wrong, 'bash\ntouch c'
    Path('page.md').write_text(''.join(f'```{block}\n```\n' for block in blocks))
    with pytest.raises((KeyError, subprocess.CalledProcessError)):
        run_page(Path('page.md'))
    assert Path('a/b.py').read_text() == 'x = 1\n'
    assert not Path('c').exists()


@pytest.mark.slow
@pytest.mark.parametrize('page', HOW_TO)
def test_the_blocks_of_a_page_run(page, tmp_path):
    copy = tmp_path / 'vt'
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH=str(copy), CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    env |= dict(HF_HUB_OFFLINE='1', HF_HUB_CACHE=str(tmp_path / 'hub'), TORCH_HOME=str(tmp_path / 'torch'))
    if page == 'how-to/public-weights.md':  # random weights stand for those that the libraries fetch
        for name in ('swin_tiny_patch4_window7_224.ms_in1k', 'deit_small_patch16_224.fb_in1k', 'resnet18.a1_in1k'):
            put_in_hub(tmp_path / 'hub', name)
    if page in ('how-to/public-weights.md', 'how-to/own-segmentation.md', 'how-to/large-images.md'):
        put_in_torch_home(tmp_path / 'torch', 'ResNet18_Weights.IMAGENET1K_V1')
    command = [sys.executable, ROOT / 'tests/page_blocks.py', copy / 'docs' / page]
    result = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    names = [f'== {Path(page).name}:{block.line}' for block in read_blocks(ROOT / 'docs' / page) if block.runs]
    assert [line for line in result.stdout.splitlines() if line.startswith('== ')] == names
