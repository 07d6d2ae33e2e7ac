"""Files of measurements: a run or a row is one line, and what all runs share stands once."""

import json

import pytest
from tool_runner import ROOT

from docs.reports.__main__ import parse_args
from docs.reports.records import lay_out, read_recorded, write_measured, write_recorded
from vt.errors import UserError

FOLDERS = 'docs/records', 'docs/benchmarks', 'projects/*/records', 'projects/*/measured', 'projects/*/attention'
FILES = [path for folder in FOLDERS for path in ROOT.glob(f'{folder}/**/*.json')]
FILES += [*ROOT.glob('projects/*/measured.json'), ROOT / 'docs/reports/forward_files.json']
RUN = dict(label='a', seed=0, device='A CPU', versions=dict(torch='2.0'), options={}, metrics={'accuracy/top1': 99.1})


@pytest.mark.parametrize('path', FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_committed_file_has_a_line_for_each_row(path):
    text = path.read_text()
    assert text == lay_out(json.loads(text)), f'python -m docs.reports layout {path.relative_to(ROOT)}'


def test_what_all_runs_share_stands_once(tmp_path):
    runs = [RUN, RUN | dict(seed=1, options={'train_cfg.max_epochs': 1}), RUN | dict(seed=2, run='of newer versions')]
    write_recorded(tmp_path / 'table.json', runs)
    assert read_recorded(tmp_path / 'table.json', '') == runs
    lines = (tmp_path / 'table.json').read_text().splitlines()
    assert lines[1:4] == [' "device": "A CPU",', ' "versions": {"torch": "2.0"},', ' "runs": [']
    assert [json.loads(line.strip(' ,'))['seed'] for line in lines[4:7]] == [0, 1, 2]


@pytest.mark.parametrize('content', [RUN, [RUN, RUN | dict(seed=1)]], ids=['training.json', 'records of runs'])
def test_files_of_the_commands_are_read_too(content, tmp_path):
    (tmp_path / 'runs.json').write_text(json.dumps(content))
    assert read_recorded(tmp_path / 'runs.json', '') == (content if isinstance(content, list) else [content])
    with pytest.raises(UserError, match=r'there is no .*none\.json; train it'):
        read_recorded(tmp_path / 'none.json', 'train it')


def test_a_file_is_laid_out_in_place_and_keeps_its_content(tmp_path):
    content = dict(command='measure', results=[dict(seconds=[0.1, 0.2]), dict(seconds=[])], parts={'a': [1]}, none=[])
    (tmp_path / 'measured.json').write_text(json.dumps(content, indent=2))
    args = parse_args(['layout', str(tmp_path / 'measured.json')])
    args.function(args)
    text = (tmp_path / 'measured.json').read_text()
    assert json.loads(text) == content
    assert len(text.splitlines()) == 11


def test_measurements_tell_their_origin(tmp_path):
    write_measured(tmp_path / 'measured.json', results=[dict(seconds=float('nan'))])
    content = json.loads((tmp_path / 'measured.json').read_text())
    assert content.keys() > {'command', 'device', 'versions'}
    assert content['results'] == [dict(seconds=None)]
