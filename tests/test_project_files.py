"""What a contributor reads first: links lead to files, workflows run the suite."""

import re

import pytest
import yaml
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


@pytest.mark.parametrize(('name', 'suite'), [('tests', 'bash tests/run.sh'), ('newest', 'bash tests/newest.sh')])
def test_a_workflow_runs_the_suite(name, suite):
    job = yaml.safe_load((ROOT / f'.github/workflows/{name}.yml').read_text())['jobs'][name]
    assert suite in [step['run'] for step in job['steps'] if 'run' in step][-1]
