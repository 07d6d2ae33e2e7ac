"""What tools write is whole or not there, and what is damaged all the same is named while the others are reported."""

import json
import pickle
import signal
import time

import pytest
import torch
from apis.small_models import make
from bad_input.one_process import call
from forked_tools import ForkedTool, run_forked
from tool_runner import ROOT, assert_one_line

LIMITED = ROOT / 'tests/bad_input/limited_tool.py'
FEW = ['test_dataloader.dataset.indices=32', 'test_dataloader.batch_size=32']
DAMAGES = {
    'cut off': lambda text: text[: len(text) // 2],
    'empty': lambda text: '',
    'zeros': lambda text: '\0' * len(text),
    'binary': lambda text: b'\x80\x02\xff\xfe',
    'a list': lambda text: '[1, 2]',
    'a number': lambda text: '3',
    'null': lambda text: 'null',
    'nested': lambda text: '[' * 100_000,
    'another dict': lambda text: '{"a": 1}',
    'escape sequences': lambda text: json.dumps('\x1b[2J'),
}


RECORD = dict(options={}, length='10 epochs', seconds=12.0, iterations=100, batch_size=8, date='2026-01-02')
RECORD |= dict(device='A CPU', versions=dict(torch='2.0'), flops=77_400_000, parameters=2_620_000)
RECORD |= dict(config='configs/vt_resnet/vt-resnet18-half_digits.py')


@pytest.fixture
def runs(tmp_path):
    for name in ('plain', 'wide'):
        for seed in range(2):
            folder = tmp_path / f'runs/{name}_seed-{seed}'
            folder.mkdir(parents=True)
            record = RECORD | dict(seed=seed, metrics={'accuracy/top1': 90.0 + seed})
            (folder / 'training.json').write_text(json.dumps(record))
            (folder / 'output.txt').write_text('')
    return tmp_path / 'runs'


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize('kind', DAMAGES)
@pytest.mark.parametrize('command', ['runs', 'scores', 'sweep'])
def test_a_damaged_record_is_named_and_the_others_are_reported(command, kind, runs, monkeypatch, capsys):
    damaged = runs / 'plain_seed-1/training.json'
    write(damaged, DAMAGES[kind](damaged.read_text()))
    folders = sorted(path.name for path in runs.iterdir())
    arguments = [command, *(['.'] if command == 'sweep' else folders)]
    result = call('analysis/report.py', *arguments, cwd=runs, monkeypatch=monkeypatch, capsys=capsys)
    assert_one_line(result, 'plain_seed-1')
    assert '\x1b' not in result.stderr
    rows = dict(runs='resnet18-half_digits', scores='wide', sweep='wide')
    assert rows[command] in result.stdout


def test_all_damaged_or_missing_runs_are_named(runs):
    for name in ('plain_seed-0', 'plain_seed-1', 'wide_seed-0', 'wide_seed-1'):
        (runs / name / 'training.json').write_text('{')
    result = run_forked('analysis/report.py', 'runs', *sorted(runs.iterdir()), runs / 'none', cwd=runs)
    for name in ('plain_seed-0', 'plain_seed-1', 'wide_seed-0', 'wide_seed-1', 'none'):
        assert_one_line(result, f'{name}/training.json')


@pytest.mark.parametrize('kind', DAMAGES)
def test_a_damaged_benchmark_is_named(kind, runs, monkeypatch, capsys):
    text = json.dumps(dict(config='a', metrics={'accuracy/top1': 1.0}, flops=1, parameters=1, throughput=2.0))
    write(runs / 'plain_seed-1.benchmark.json', DAMAGES[kind](text))
    arguments = ['runs', 'plain_seed-0', 'plain_seed-1']
    result = call('analysis/report.py', *arguments, cwd=runs, monkeypatch=monkeypatch, capsys=capsys)
    if kind == 'another dict':
        assert result.returncode == 0  # it adds nothing
    else:
        assert_one_line(result, 'plain_seed-1.benchmark.json')
    assert 'vt-resnet18-half_digits' in result.stdout


@pytest.fixture(scope='module')
def classifier(tmp_path_factory):
    return make(tmp_path_factory.mktemp('a model'), 'vt-resnet18-half_digits')[:2]


@pytest.fixture
def limited(tmp_path):
    """Run a tool that can't write files above a megabyte, or a tool that may."""

    def run(tool, *arguments, options=()):
        return run_forked(LIMITED, 'file-size', ROOT / 'tools' / tool, *arguments, cwd=tmp_path, options=options)

    return run


@pytest.mark.parametrize(('kind', 'suffix'), [('program', '.pt2'), ('onnx', '.onnx')])
def test_a_full_disk_leaves_the_earlier_export(kind, suffix, classifier, limited, tmp_path):
    earlier = tmp_path / f'exported/vt-resnet18-half_digits{suffix}'
    earlier.parent.mkdir()
    earlier.write_text('whole')
    result = limited('export.py', *classifier, '--formats', kind)
    assert_one_line(result, f'{earlier.name} could not be written (File too large); the existing file is unchanged')
    assert earlier.read_text() == 'whole'
    assert [path.name for path in earlier.parent.iterdir()] == [earlier.name]


def test_an_export_that_differs_leaves_the_earlier_one(classifier, tmp_path):
    earlier = tmp_path / 'exported/vt-resnet18-half_digits.pt2'
    earlier.parent.mkdir()
    earlier.write_text('whole')
    result = run_forked('export.py', *classifier, '--formats', 'program', '--tolerance=-1', cwd=tmp_path)
    assert_one_line(result, 'program differs by ')
    assert earlier.read_text() == 'whole'
    assert [path.name for path in earlier.parent.iterdir()] == [earlier.name]


def test_a_killed_export_leaves_a_whole_file(classifier, tmp_path):
    """At whatever moment: the file is the earlier one, or the new one."""
    file = tmp_path / 'exported/vt-resnet18-half_digits.pt2'
    file.parent.mkdir()
    file.write_text('whole')
    arguments = [*classifier, '--formats', 'program', '--fixed-size']
    tool = ForkedTool('export.py', *arguments, cwd=tmp_path)
    while tool.process.is_alive() and not list(file.parent.glob('.*.part')) and file.read_bytes() == b'whole':
        time.sleep(0.0005)
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    if file.read_bytes() != b'whole':
        torch.export.load(file)
    result = run_forked('export.py', *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    torch.export.load(file)
    assert not list(file.parent.glob('.*'))


def test_a_full_disk_leaves_the_earlier_predictions(classifier, limited, tmp_path):
    (tmp_path / 'p.pkl').write_text('whole')
    result = run_forked('test.py', *classifier, '--out', 'new.pkl', cwd=tmp_path, options=FEW)
    assert result.returncode == 0, result.stderr
    assert len(pickle.loads((tmp_path / 'new.pkl').read_bytes())) == 32
    many = ['test_dataloader.dataset.indices=None']
    result = limited('test.py', *classifier, '--out', 'p.pkl', options=many)
    assert_one_line(result, 'p.pkl could not be written (File too large); the existing file is unchanged')
    assert (tmp_path / 'p.pkl').read_text() == 'whole'


def test_predicted_maps_take_their_names_whole(tmp_path):
    config, checkpoint, *_ = make(tmp_path, 'vt-fpn_r18_digit-scenes')
    few = ['test_dataloader.dataset.indices=4', 'test_dataloader.batch_size=2', 'test_dataloader.num_workers=0']
    unfinished = tmp_path / 'maps/.vt-killed.part'
    unfinished.mkdir(parents=True)
    (unfinished / 'of a killed test.png').write_text('half')
    (unfinished / 'in_use.lock').write_text('')
    result = run_forked('test.py', config, checkpoint, '--out', 'maps', cwd=tmp_path, options=few)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / 'maps').iterdir())) == 4
    assert not unfinished.exists()


def test_a_report_that_cannot_be_written_is_one_line(runs):
    """Of a table, an image and a record, whose path leads to a device."""
    (runs / 'out').mkdir()
    for name in ('sweep.md', 'sweep.csv'):
        (runs / 'out' / name).mkdir()
        result = run_forked('analysis/report.py', 'sweep', '.', '--out', 'out', cwd=runs)
        assert_one_line(result, f'{name} could not be written (Is a directory)')
        (runs / 'out' / name).rmdir()
    (runs / 'out/records.json').symlink_to('/dev/full')
    folders = sorted(path for path in runs.iterdir() if '_seed-' in path.name)
    result = run_forked('analysis/report.py', 'scores', *folders, '--out', 'out/records.json', cwd=runs)
    assert_one_line(result, 'no space is left to write')
    assert not list((runs / 'out').glob('.*'))


def test_a_report_writes_to_its_folder_alone(runs):
    """A file there that leads elsewhere is replaced; the path that a person gives leads where it leads."""
    (runs / 'out').mkdir()
    (runs / 'elsewhere.csv').write_text('mine')
    (runs / 'out/sweep.csv').symlink_to('../elsewhere.csv')
    (runs / 'records.json').symlink_to('out/records.json')
    folders = sorted(path for path in runs.iterdir() if '_seed-' in path.name)
    for command in (['sweep', '.', '--out', 'out'], ['scores', *folders, '--out', 'records.json']):
        result = run_forked('analysis/report.py', *command, cwd=runs)
        assert result.returncode == 0, result.stderr
    assert (runs / 'elsewhere.csv').read_text() == 'mine'
    assert '90.00, 91.00' in (runs / 'out/sweep.csv').read_text()
    assert (runs / 'records.json').is_symlink()
    assert len(json.loads((runs / 'out/records.json').read_text())) == 4
