"""The pages of this repository are what one command writes of its records and measurements."""

import json

import pytest
from tool_runner import ROOT

from docs.reports.__main__ import parse_args
from docs.reports.pages import MARK, PLACES, find_place, render
from vt.errors import UserError

RECORD = ROOT / 'docs/records/digits-half.json'


def run(*arguments):
    args = parse_args([*map(str, arguments)])
    args.function(args)


def test_the_committed_pages_are_what_is_written():
    stale = [path for path, text in render().items() if (ROOT / path).read_bytes().decode() != text]
    assert stale == [], 'python -m docs.reports writes them again'


def test_every_table_stands_in_a_page():
    pages = [ROOT / 'README.md', *(ROOT / 'docs').glob('*.md'), *(ROOT / 'docs').glob('how-to/*.md')]
    assert {find_place(mark) for page in pages for mark in MARK.findall(page.read_text())} == PLACES.keys()


def test_runs_of_ones_own_stand_beside_the_papers(tmp_path, capsys):
    run('ablation', RECORD, '--out', tmp_path / 'out')
    printed = capsys.readouterr().out
    assert 'Table 2 on digits, 10 epochs: ' in printed
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {'tables.md', 'tables.csv', 'changes.png'}


def test_runs_of_ones_own_that_cannot_be_read_or_share_no_table_are_named(tmp_path, capsys):
    for damage in ('{', '{"config": 3}'):
        (tmp_path / 'training.json').write_text(damage)
        with pytest.raises(UserError, match=r'training\.json'):
            run('ablation', RECORD, tmp_path)
        assert 'Table 2 on digits, 10 epochs: ' in capsys.readouterr().out
    costs = dict(metrics={'accuracy/top1': 1.0}, flops=1, parameters=1)
    record = dict(config='configs/x_digits.py', seed=0, length='1 epochs', options={}) | costs
    (tmp_path / 'training.json').write_text(json.dumps(record))
    with pytest.raises(UserError, match='no two of these runs stand in one table'):
        run('ablation', tmp_path)


def test_complexity_beside_the_papers(capsys):
    run('complexity')
    printed = capsys.readouterr().out
    rows = [line.replace('|', ' ').split() for line in printed.splitlines() if 'FPN / VT-FPN' in line]
    assert [row[-1] for row in rows] == ['6.48x', '6.40x']
    assert all(float(row[-3].rstrip('x')) > float(row[-1].rstrip('x')) for row in rows)  # ours / the paper's
    for number in range(1, 11):
        assert f'Table {number}: ' in printed
    assert "the paper's tables disagree" in printed  # on VT-R34's parameters
