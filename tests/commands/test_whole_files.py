"""What tools write is whole or not there, and what is damaged all the same is named while the others are reported.

That no place of VT writes a file by other means is in ``tests/test_writers.py``, and that this means leaves whole files
whatever befalls it in ``tests/checkpoints/test_atomic_files.py``. What is written as JSON is plain numbers.
"""

import json

import numpy as np
import pytest
import torch
from tool_runner import assert_one_line, call, succeed

from vt.files import as_plain, write_json

DAMAGES = {
    'cut off': lambda text: text[: len(text) // 2],
    'binary': lambda text: b'\x80\x02\xff\xfe',
    'a number': lambda text: '3',
    'nested': lambda text: '[' * 100_000,
    'another dict': lambda text: '{"a": 1}',
    'escape sequences': lambda text: json.dumps('\x1b[2J'),
}
RECORD = dict(options={}, length='10 epochs', seconds=12.0, iterations=100, batch_size=8, date='2026-01-02')
RECORD |= dict(device='A CPU', versions=dict(torch='2.0'), flops=77_400_000, parameters=2_620_000)
RECORD |= dict(config='configs/vt_resnet/vt-resnet18-half_digits.py')
RUNS = ['plain_seed-0', 'plain_seed-1', 'wide_seed-0', 'wide_seed-1']


@pytest.fixture
def runs(tmp_path):
    for name in RUNS:
        (tmp_path / 'runs' / name).mkdir(parents=True)
        record = RECORD | dict(seed=int(name[-1]), metrics={'accuracy/top1': 90.0 + int(name[-1])})
        (tmp_path / 'runs' / name / 'training.json').write_text(json.dumps(record))
        (tmp_path / 'runs' / name / 'output.txt').write_text('')
    return tmp_path / 'runs'


def damage(path, kind, text):
    content = DAMAGES[kind](text)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize('kind', DAMAGES)
def test_a_damaged_record_is_named_and_the_others_are_reported(kind, runs):
    """In each command; then a benchmark beside whole records."""

    def assert_named(name, *commands):
        for command, row in commands:
            result = call('analysis/report.py', command, *(['.'] if command == 'sweep' else RUNS), cwd=runs)
            assert_one_line(result, name)
            assert '\x1b' not in result.stderr
            assert row in result.stdout

    path, text = runs / 'plain_seed-1/training.json', (runs / 'plain_seed-1/training.json').read_text()
    damage(path, kind, text)
    assert_named('plain_seed-1', ('runs', 'resnet18-half_digits'), ('scores', 'wide'), ('sweep', 'wide'))
    path.write_text(text)
    if kind != 'another dict':  # which adds nothing
        benchmark = dict(config='a', metrics={'accuracy/top1': 1.0}, flops=1, parameters=1, throughput=2.0)
        damage(runs / 'plain_seed-1.benchmark.json', kind, json.dumps(benchmark))
        assert_named('plain_seed-1.benchmark.json', ('runs', 'resnet18-half_digits'))


def test_a_report_is_written_where_a_link_leads(runs):
    (runs / 'out').mkdir()
    (runs / 'records.json').symlink_to('out/records.json')
    for command in (['sweep', '.', '--out', 'out'], ['scores', *RUNS, '--out', 'records.json']):
        succeed(call('analysis/report.py', *command, cwd=runs))
    assert '90.00, 91.00' in (runs / 'out/sweep.csv').read_text()
    assert (runs / 'records.json').is_symlink()
    assert len(json.loads((runs / 'out/records.json').read_text())) == 4


def test_matrices_and_numbers_that_json_lacks_are_plain(tmp_path):
    metrics = dict(matrix=torch.arange(4).view(2, 2), classes=np.array([0.5, float('nan')]), one=np.float32(0.5))
    metrics |= dict(top=(1, 2), inf=float('-inf'), deep=dict(a=[torch.tensor(float('nan'))]))
    plain = dict(matrix=[[0, 1], [2, 3]], classes=[0.5, None], one=0.5, top=[1, 2], inf=None, deep=dict(a=[None]))
    assert as_plain(metrics) == plain
    write_json(metrics, tmp_path / 'm.json')
    assert json.loads((tmp_path / 'm.json').read_text(), parse_constant=pytest.fail) == plain
