"""The records in docs/records: short runs are repeated to the last bit, and the pages are what the records say."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from tool_runner import ROOT

from vt.analysis.ablation import score_tables
from vt.analysis.attention import attention_page

RECORDS = ROOT / 'docs/records'
SHORT = json.loads((RECORDS / 'repeat.json').read_text())


@pytest.mark.parametrize(
    'record',
    [
        pytest.param(record, id=record['label'], marks=[] if '-norm' in record['label'] else pytest.mark.slow)
        for record in SHORT
    ],
)
def test_a_short_run_repeats_its_record(record, tmp_path):
    """On the recorded processor and versions to the last bit; other processors round otherwise, and come near."""
    options = [f'{key}={value}' for key, value in record['options'].items()]
    command = [sys.executable, 'tools/train.py', record['config'], '--work-dir', str(tmp_path), '--cfg-options']
    result = subprocess.run(
        [*command, f'randomness.seed={record["seed"]}', *options],
        cwd=ROOT,
        env=os.environ | dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES=''),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads((tmp_path / 'training.json').read_text())
    assert (found['flops'], found['parameters']) == (record['flops'], record['parameters'])
    (score,), (recorded,) = found['metrics'].values(), record['metrics'].values()
    assert score == pytest.approx(recorded, abs=10)
    if (found['device'], found['versions']) == (record['device'], record['versions']):
        assert (score, found['weights']) == (recorded, record['weights'])


def test_pages_and_headers_are_those_of_the_records(tmp_path):
    """Nothing changes where they are written again."""
    shutil.copytree(ROOT / 'configs', tmp_path / 'configs')
    score_tables.write_headers(tmp_path, RECORDS)
    for path in (tmp_path / 'configs').rglob('*.py'):
        assert path.read_text() == (ROOT / path.relative_to(tmp_path)).read_text(), path
    for page in (ROOT / 'README.md', *(ROOT / 'docs').glob('*.md')):
        copy = tmp_path / page.name
        shutil.copy(page, copy)
        score_tables.write_page(copy, RECORDS)
        attention_page.write_page(copy, ROOT / 'docs/attention')
        assert copy.read_text() == page.read_text(), page
