"""What a contributor reads first: links lead to files, workflows run the suite."""

import re
from importlib.metadata import distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from tool_runner import ROOT

PAGES = [page for places in ('*', 'docs/**/*', 'configs/**/*', 'projects/*/*') for page in ROOT.glob(f'{places}.md')]


def test_every_link_to_a_file_leads_to_one():
    assert len(PAGES) > 50
    for page in PAGES:
        text = re.sub(r'```.*?```', '', page.read_text(), flags=re.DOTALL)
        links = re.findall(r'\]\((?!\w+:|#)([^)\s#]+)', text)
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_every_promise_names_its_test():
    """In the last column of its row; that the files are there is tested above."""
    rows = re.findall(r'^\| .* \|$', (ROOT / 'docs/promises.md').read_text().split('## Silent faults')[0], re.MULTILINE)
    promises = [row for row in rows if not row.startswith(('| promise', '|---'))]
    assert len(promises) > 10
    assert [row for row in promises if '](../tests/' not in row.rsplit(' | ', 1)[1]] == []


def jobs_of(name):
    return yaml.safe_load((ROOT / f'.github/workflows/{name}.yml').read_text())['jobs']


def test_every_pin_suits_every_python():
    """By the metadata of installed packages; the workflow runs the claimed Pythons and the next."""
    claimed = re.findall(r"'Programming Language :: Python :: (3\.\d+)'", (ROOT / 'setup.py').read_text())
    tried = jobs_of('tests')['tests']['strategy']['matrix']['python']
    assert len(claimed) > 2
    assert {*claimed} <= {*tried}
    lines = (ROOT / 'constraints.txt').read_text().splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith('#')]
    needs = {(each.name, each.version): each.metadata['Requires-Python'] or '' for each in distributions()}
    needs = {(canonicalize_name(name), f'=={version}'): SpecifierSet(words) for (name, version), words in needs.items()}
    found = [needs.get((pin.name, str(pin.specifier)), SpecifierSet()) for pin in pins]
    assert len([words for words in found if words]) > 50
    for python in tried:
        version = f'{python}.10'
        marks = dict(python_version=python, python_full_version=version)
        meant = [pin.marker is None or pin.marker.evaluate(marks) for pin in pins]
        of_python = [(pin.name, words) for pin, words, is_meant in zip(pins, found, meant) if is_meant]
        assert len({name for name, _ in of_python}) == len(of_python)
        assert [name for name, words in of_python if version not in words] == []


@pytest.mark.parametrize(('name', 'suite'), [('tests', 'bash tests/run.sh'), ('newest', 'bash tests/newest.sh')])
def test_a_workflow_runs_the_suite(name, suite):
    assert suite in [step['run'] for step in jobs_of(name)[name]['steps'] if 'run' in step][-1]
