"""What a contributor reads first: links lead to files, workflows run the suite."""

import re
from importlib.metadata import distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tool_runner import ROOT

PAGES = [
    page
    for places in ('*', 'docs/**/*', 'configs/**/*', 'projects/*/*', 'tests/**/*')
    for page in ROOT.glob(f'{places}.md')
]


def test_every_link_to_a_file_leads_to_one():
    assert len(PAGES) > 50
    for page in PAGES:
        text = re.sub(r'```.*?```', '', page.read_text(), flags=re.DOTALL)
        links = re.findall(r'\]\((?!\w+:|#)([^)\s#]+)', text)
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_every_promise_names_its_test():
    """In the last column of its row; that the files are there is tested above."""
    rows = re.findall(r'^\| .* \|$', (ROOT / 'tests/README.md').read_text().split('## Silent faults')[0], re.MULTILINE)
    promises = [row for row in rows if not row.startswith(('| promise', '|---'))]
    assert len(promises) > 10
    assert [row for row in promises if '](' not in row.rsplit(' | ', 1)[1]] == []


def jobs_of(name):
    return yaml.safe_load((ROOT / f'.github/workflows/{name}.yml').read_text())['jobs']


def test_every_pin_suits_every_python():
    """By the metadata of installed packages; the workflow runs the claimed Pythons and the next."""
    claimed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / 'pyproject.toml').read_text())
    tried = jobs_of('tests')['tests']['strategy']['matrix']['python']
    assert len(claimed) > 2
    assert {*claimed} <= {*tried}
    pins = [Requirement(line) for line in (ROOT / 'constraints.txt').read_text().splitlines() if line[0] != '#']
    found = {(each.name, each.version): each.metadata['Requires-Python'] or '' for each in distributions()}
    needs = {f'{canonicalize_name(name)}=={version}': SpecifierSet(words) for (name, version), words in found.items()}
    for python in tried:
        marks = dict(python_version=python, python_full_version=f'{python}.10')
        own = [f'{pin.name}{pin.specifier}' for pin in pins if pin.marker is None or pin.marker.evaluate(marks)]
        assert len({pin.partition('==')[0] for pin in own}) == len(own)
        assert len([pin for pin in own if needs.get(pin)]) > 50
        assert [pin for pin in own if f'{python}.10' not in needs.get(pin, SpecifierSet())] == []


@pytest.mark.parametrize(('name', 'suite'), [('tests', 'bash tests/run.sh'), ('newest', 'bash tests/newest.sh')])
def test_a_workflow_runs_the_suite(name, suite):
    assert suite in [step['run'] for step in jobs_of(name)[name]['steps'] if 'run' in step][-1]
