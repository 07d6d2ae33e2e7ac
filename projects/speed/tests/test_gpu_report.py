"""The report of a GPU: in its dry form everything but the device, and what errors and limits leave of it."""

import time
from itertools import groupby

import pytest
import torch
from tool_runner import assert_one_line

from projects.speed.gpu_parts import train
from projects.speed.gpu_report import PARTS, gpu_report, read_lines
from projects.speed.gpu_rows import Rows
from projects.speed.performance import MEASURED, render
from projects.speed.tests import breaking_parts
from projects.speed.tests.module_call import call
from vt.errors import UserError


def report(folder, *arguments):
    """The script on a machine without a GPU."""
    return call('gpu_report', 'report', *arguments, cwd=folder, env=dict(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1'))


@pytest.fixture(scope='module')
def dry(tmp_path_factory):
    """The folder of a dry report."""
    folder = tmp_path_factory.mktemp('a report')
    result = report(folder, '--dry', '--seconds', '100000')
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / 'report'


@pytest.mark.slow
def test_every_part_has_rows_without_errors(dry):
    lines = read_lines(dry)
    assert [name for name, _ in groupby(line['part'] for line in lines)] == [*PARTS, 'report']
    assert [line for line in lines if 'error' in line or 'skipped' in line] == []
    assert lines[-1]['dry']


@pytest.mark.slow
def test_the_folder_holds_a_few_files(dry):
    assert sorted(path.name for path in dry.iterdir()) == ['log.txt', 'measured.jsonl']
    assert 'over 1 of 1 processes' in (dry / 'log.txt').read_text()


@pytest.mark.slow
def test_graphs_and_eager_steps_have_the_same_gradients(dry):
    eager, graphs = (line['gradient'] for line in read_lines(dry) if line['part'] == 'graphs')
    assert eager == pytest.approx(graphs, rel=1e-3)


@pytest.mark.slow
def test_the_page_on_performance_shows_it(dry, tmp_path):
    for path in MEASURED.glob('*_cpu.json'):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / 'some-card').symlink_to(dry)
    text = render(tmp_path)
    section = text[text.index('## On a GPU') : text.index('## Commands of the measurements')]
    assert 'Not measured' not in section
    assert 'a dry run in the smallest sizes' in section
    models = ['fpn_r50', 'vt-fpn_r50', 'vt-fpn_vt-r50', 'vt-resnet50', 'torchvision:resnet18', 'timm:pvt_v2_b2']
    others = ['cswin-tiny', 'tokenize', 'ResNet-50, MMPretrain', 'VT-FPN', 'tf32']
    assert [name for name in models + others if f'\n| {name}' not in section] == []


def test_the_parts_fit_into_the_time():
    assert sum(PARTS.values()) <= 455


def test_without_a_gpu_it_says_what_to_do(tmp_path):
    assert_one_line(report(tmp_path), 'there is no GPU that PyTorch can use; --dry measures in the smallest sizes')


def test_a_part_without_time_is_not_begun(tmp_path):
    result = report(tmp_path, '--dry', '--seconds', '1')
    assert result.returncode == 0, result.stderr
    *lines, _ = read_lines(tmp_path / 'report')
    assert lines == [dict(part=name, skipped='no time was left') for name in PARTS]


def test_a_part_that_breaks_breaks_no_other(tmp_path):
    """One ends its process; rows of the next, in a new process, fail or are measured."""
    with pytest.raises(UserError, match='there are errors in dies, fails: see'):
        gpu_report(tmp_path, 1e6, True, dict(dies=1, fails=1), 'projects.speed.tests.breaking_parts')
    before, died, failed, number, _ = read_lines(tmp_path)
    assert before['name'] == 'before'
    assert died['error'].startswith('the process that measured it ended')
    assert failed['error'] == 'ZeroDivisionError: division by zero'
    assert number['number'] == 2
    assert 'row.update(number=1 / 0)' in (tmp_path / 'log.txt').read_text()  # the traceback


def test_a_part_that_hangs_is_ended(tmp_path):
    with pytest.raises(UserError, match='there are errors in hangs: see'):
        gpu_report(tmp_path, 12, True, dict(hangs=1), 'projects.speed.tests.breaking_parts')
    assert 'took too long' in read_lines(tmp_path)[0]['error']


def rows_until(seconds, folder):
    return Rows('part', time.monotonic() + seconds, torch.device('cpu'), True, folder)


def test_a_row_without_time_is_skipped(tmp_path):
    breaking_parts.lasts(rows_until(0.1, tmp_path))
    assert [line.get('skipped') for line in read_lines(tmp_path)] == [None, 'no time was left']


def test_a_command_is_stopped_when_time_is_over(tmp_path):
    rows = rows_until(1, tmp_path)
    rows.add(lambda row: train(row, rows, ['bash', '-c', 'echo begun; sleep 3600'], []))
    assert 'returned non-zero exit status 124' in (tmp_path / 'log.txt').read_text()
    assert '\nbegun\n' in (tmp_path / 'log.txt').read_text()
    assert 'error' in read_lines(tmp_path)[0]
