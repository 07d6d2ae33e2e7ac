"""The records in docs/records: short runs are repeated to the last bit, and what the records show holds."""

import json
import os

import pytest
from tool_runner import ROOT, run, succeed

from docs.reports.scores import read_table

RECORDS = ROOT / 'docs/records'
SHORT = read_table(RECORDS / 'repeat.json')


def case(record):
    return pytest.param(record, id=record['label'], marks=[] if '-tuned' in record['label'] else pytest.mark.slow)


@pytest.mark.parametrize('record', map(case, SHORT))
def test_a_short_run_repeats_its_record(record, tmp_path):
    """On the recorded processor and versions to the last bit; other processors round otherwise, and come near."""
    options = [f'{key}={value}' for key, value in record['options'].items()]
    env = os.environ | dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='')
    options.append(f'randomness.seed={record["seed"]}')
    succeed(run('train.py', record['config'], '--work-dir', str(tmp_path), cwd=ROOT, options=options, env=env))
    found = json.loads((tmp_path / 'training.json').read_text())
    assert (found['flops'], found['parameters']) == (record['flops'], record['parameters'])
    (score,), (recorded,) = found['metrics'].values(), record['metrics'].values()
    assert score == pytest.approx(recorded, abs=10)
    if (found['device'], found['versions']) == (record['device'], record['versions']):
        assert (score, found['weights']) == (recorded, record['weights'])
