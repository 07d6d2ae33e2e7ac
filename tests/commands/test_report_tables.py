"""The reports of committed results: one command makes every table and the picture again."""

import json
import shutil

import pytest
from forked_tools import run_forked
from tool_runner import ROOT, assert_one_line

from vt.analysis import export_page

TABLES = ('twin-digits-10e', 'twin-digits', 'digits-half', 'relational-scenes')
RESULTS = ROOT / 'docs/ablations'
RECORDS = [ROOT / f'docs/records/{name}.json' for name in TABLES]
SPEED = [ROOT / f'docs/benchmarks/{name}_cpu.json' for name in ('ablations', 'scenes')]


@pytest.fixture(scope='module')
def regenerated(tmp_path_factory):
    folder = tmp_path_factory.mktemp('a report')
    page = shutil.copy(ROOT / 'docs/ablations.md', folder)
    arguments = [*RECORDS, '--speed', *SPEED, '--out', folder / 'out', '--page', page]
    result = run_forked('report.py', 'ablation', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


def test_the_tables_are_those_of_the_committed_results(regenerated):
    folder, _ = regenerated
    for name in ('tables.md', 'tables.csv'):
        assert (folder / 'out' / name).read_text() == (RESULTS / name).read_text()
    assert (folder / 'ablations.md').read_text() == (ROOT / 'docs/ablations.md').read_text()
    assert (folder / 'out/changes.png').stat().st_size > 10_000


def test_every_table_is_printed(regenerated):
    _, output = regenerated
    for number in (2, 3, 4, 5, 6, 7):
        assert f'Table {number} on twin-digits, 3 epochs: ' in output
    assert 'Table 2 on digits, 10 epochs: ' in output
    assert 'Table 9 on r18_relational-scenes, 2,400 iterations: ' in output


def test_the_committed_runs_can_be_repeated():
    """The config of each is there."""
    records = [record for path in (ROOT / 'docs/records').glob('*.json') for record in json.loads(path.read_text())]
    configs = {record['config'] for record in records}
    assert [config for config in configs if not (ROOT / config).is_file()] == []


def test_runs_that_share_no_table_are_one_line(tmp_path):
    run_dir = tmp_path / 'run'
    run_dir.mkdir()
    record = dict(
        config='configs/x_digits.py',
        seed=0,
        length='1 epochs',
        options={},
        metrics={'accuracy/top1': 1.0},
        flops=1,
        parameters=1,
    )
    (run_dir / 'training.json').write_text(json.dumps(record))
    assert_one_line(
        run_forked('report.py', 'ablation', run_dir, cwd=tmp_path), 'no two of these runs stand in one table'
    )
    assert_one_line(run_forked('report.py', 'ablation', tmp_path / 'none', cwd=tmp_path), 'there is no ')


def test_the_page_of_exports_is_what_was_measured(tmp_path):
    page = tmp_path / 'export.md'
    page.write_text((ROOT / 'docs/export.md').read_text())
    export_page.write_page(page, ROOT / 'docs/benchmarks/export')
    assert page.read_text() == (ROOT / 'docs/export.md').read_text()
