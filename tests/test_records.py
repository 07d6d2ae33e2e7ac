"""The records in docs/records: short runs are repeated to the last bit, and what the records show holds."""

import json
import os
import subprocess
import sys

import pytest
from tool_runner import ROOT

RECORDS = ROOT / 'docs/records'
SHORT = json.loads((RECORDS / 'repeat.json').read_text())


@pytest.mark.parametrize(
    'record',
    [
        pytest.param(record, id=record['label'], marks=[] if '-tuned' in record['label'] else pytest.mark.slow)
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
