"""``--help`` of every tool is a sentence, its options and an example that the tool accepts, printed without PyTorch."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from tool_runner import ROOT

from vt.apis.model_zoo import find_source
from vt.cli.commands import COMMANDS
from vt.cli.main import parse

TOOLS = [*(ROOT / 'tools').rglob('*.py')]
REPORTS = ('runs', 'scores', 'sweep')


def parse_words(path, arguments, monkeypatch):
    monkeypatch.setattr(sys, 'argv', [str(path), *arguments])
    return parse(COMMANDS[path.stem.replace('_', '-')])


@pytest.mark.parametrize(
    ('path', 'command'),
    [*((path, '') for path in TOOLS), *((ROOT / 'tools/analysis/report.py', name) for name in REPORTS)],
    ids=lambda value: str(value)[-30:],
)
def test_help_has_a_sentence_and_an_example_that_is_accepted(path, command, monkeypatch, capsys):
    monkeypatch.setenv('COLUMNS', '200')
    with pytest.raises(SystemExit, match='0'):
        parse_words(path, [*command.split(), '--help'], monkeypatch)
    text = capsys.readouterr().out
    description, example = text.split('\n\n')[1], text.split('\nexample:\n')[1]
    assert re.fullmatch(r'[A-Z][^\n]{10,110}\w\.', description)
    assert '\ncommon options:\n' in text or '{' in text
    words = shlex.split(example.replace('\\\n', ''))
    assert words[:2] == ['python', os.path.relpath(path)]
    args = parse_words(path, words[2:], monkeypatch)
    assert not command or args.command == command
    named = [*vars(args).get('words', [])[:1], vars(args).get('config'), *vars(args).get('configs', [])]
    named = [name for name in named if name and '=' not in name and not name.startswith('work_dirs/')]
    assert all(find_source(name) for name in named)  # of a model that exists


def test_help_of_every_tool_needs_no_pytorch():
    code = f"""
import runpy, sys
for path in {[str(path) for path in TOOLS]}:
    sys.argv = [path, '--help']
    try:
        runpy.run_path(path, run_name='__main__')
    except SystemExit as end:
        assert end.code == 0
assert 'torch' not in sys.modules
"""
    subprocess.run([sys.executable, '-c', code], check=True, capture_output=True)
