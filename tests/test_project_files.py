"""What a contributor reads first: links lead to files, the figure of packages is current, workflows run the suite."""

import re
import runpy

import pytest
import yaml
from tool_runner import ROOT

PAGES = sorted(path for path in (*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md')))


@pytest.mark.parametrize('page', [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_every_link_to_a_file_leads_to_one(page):
    text = re.sub(r'```.*?```', '', page.read_text(), flags=re.DOTALL)
    links = re.findall(r'\]\((?!\w+:|#)([^)\s#]+)', text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_figure_of_the_packages_is_that_of_the_imports():
    """Drawn again with ``python docs/figures/rooms.py``; it raises where packages import each other in a circle."""
    rooms = runpy.run_path(str(ROOT / 'docs/figures/rooms.py'))
    found = rooms['read_rooms']()
    assert (ROOT / 'docs/figures/rooms.svg').read_text() == rooms['draw'](found)
    assert found['commands'] >= {'apis', 'engine'}
    assert found['models'].isdisjoint({'engine', 'apis', 'commands'})


def test_a_circle_of_packages_is_refused():
    rooms = runpy.run_path(str(ROOT / 'docs/figures/rooms.py'))
    with pytest.raises(ValueError, match='cycle'):
        rooms['arrange'](dict(a={'b'}, b={'a'}))


@pytest.mark.parametrize('name', ['tests', 'newest'])
def test_a_workflow_runs_the_suite(name):
    text = (ROOT / f'.github/workflows/{name}.yml').read_text()
    (job,) = yaml.safe_load(text)['jobs'].values()
    commands = [step['run'] for step in job['steps'] if 'run' in step]
    suite = {'tests': 'bash tests/run.sh', 'newest': 'python -m pytest'}[name]
    assert suite in commands[-1]
