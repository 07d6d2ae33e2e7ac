"""The report of a GPU: in its dry form everything but the device, and what errors and limits leave of it."""

import json
import time

import pytest
from tool_runner import assert_one_line

from projects.speed import gpu_process
from projects.speed.gpu_parts import run_until
from projects.speed.gpu_process import PARTS, GpuReport
from projects.speed.performance import MEASURED, render
from projects.speed.tests.module_call import call


def report(folder, *arguments):
    """The script on a machine without a GPU."""
    return call('gpu_report', 'report', *arguments, cwd=folder, env=dict(CUDA_VISIBLE_DEVICES=''))


@pytest.fixture(scope='module')
def dry(tmp_path_factory):
    """The folder of a dry report."""
    folder = tmp_path_factory.mktemp('a report')
    result = report(folder, '--dry')
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / 'report'


@pytest.mark.slow
def test_every_part_has_rows_without_errors(dry):
    measured = json.loads((dry / 'measured.json').read_text())
    assert measured['dry']
    assert list(measured['parts']) == list(PARTS)
    for name, part in measured['parts'].items():
        assert part['rows'], name
        assert 'error' not in part, part
        assert not [row for row in part['rows'] if 'error' in row or 'skipped' in row]
    assert all(row['repeats'] and max(row['norm'].values()) < 0.02 for row in measured['parts']['kernels']['rows'])
    assert [row['graphs'] for row in measured['parts']['compiled']['rows']] == [1] * 4


@pytest.mark.slow
def test_the_folder_holds_a_few_files(dry):
    records = [f'training-{row}.json' for row in ('digits_bf16', 'scenes_bf16')]
    assert sorted(path.name for path in dry.iterdir()) == ['log.txt', 'measured.json', *records]
    assert json.loads((dry / records[0]).read_text())['length'] == '1 epochs'
    assert 'Epoch(val)' in (dry / 'log.txt').read_text()


@pytest.mark.slow
def test_the_page_on_performance_shows_it(dry, tmp_path):
    for path in MEASURED.glob('*_cpu.json'):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / 'some-card').symlink_to(dry)
    text = render(tmp_path)
    section = text[text.index('## On a GPU') : text.index('## Commands of the measurements')]
    assert 'Not measured' not in section
    assert 'a dry run in the smallest sizes' in section
    models = ['fpn_r18', 'vt-fpn_r18', 'resnet50', 'vt-resnet50', 'torchvision:resnet50', 'scenes_bf16', 'tokenize']
    assert [name for name in models if f'\n| {name}' not in section] == []


def test_without_a_gpu_it_says_what_to_do(tmp_path):
    assert_one_line(report(tmp_path), 'there is no GPU that PyTorch can use; --dry measures in the smallest sizes')


def test_a_part_without_time_is_not_begun(tmp_path):
    result = report(tmp_path, '--dry', '--seconds', '1')
    assert result.returncode == 0, result.stderr
    parts = json.loads((tmp_path / 'report/measured.json').read_text())['parts']
    assert parts['necks']['skipped'] == 'needs 45 s, and 1 s were left'
    assert not any(part['rows'] for part in parts.values())


def test_a_part_that_breaks_breaks_no_other(tmp_path, monkeypatch, capfd):
    """One ends its process, one hangs, rows of one fail; the next has a process that works."""
    whole = GpuReport(tmp_path, seconds=1e6, dry=True)
    whole.measure('dies', 'projects.speed.tests.breaking_parts:dies', needs=600)
    with monkeypatch.context() as patch:
        patch.setattr(gpu_process, 'GRACE', 0)
        whole.measure('hangs', 'projects.speed.tests.breaking_parts:hangs', needs=0)
    whole.measure('fails', 'projects.speed.tests.breaking_parts:fails', needs=600)
    whole.measure('lasts', 'projects.speed.tests.breaking_parts:lasts', needs=0.1)
    whole.end_worker()
    parts = json.loads((tmp_path / 'measured.json').read_text())['parts']
    assert [row['name'] for row in parts['dies']['rows']] == ['before']
    assert parts['dies']['error'].startswith('the process that measured it is gone')
    assert parts['hangs']['error'].endswith('it took too long')
    assert parts['fails']['rows'][0]['error'] == 'ZeroDivisionError: division by zero'
    assert parts['fails']['rows'][1]['number'] == 2
    assert 'row.update(number=1 / 0)' in (tmp_path / 'log.txt').read_text()  # the traceback
    assert [row.get('skipped') for row in parts['lasts']['rows']] == [None, 'no time was left']
    assert whole.failed == ['dies', 'hangs', 'fails']


def test_a_command_is_stopped_when_time_is_over():
    begun = run_until(['bash', '-c', 'echo begun; sleep 3600'], time.monotonic() + 1)
    assert begun == 'begun\n'
