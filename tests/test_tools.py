"""``--help`` of every tool is a sentence, its options and an example that the tool accepts, printed without PyTorch."""

import os
import re
import runpy
import shlex
import subprocess
import sys

import pytest
from tool_runner import ROOT

from vt.apis.model_zoo import find_source

TOOLS = [path for path in (ROOT / 'tools').rglob('*.py') if 'ToolParser(' in path.read_text()]
COMMANDS = [(path, name) for path in TOOLS for name in ['', *re.findall(r"= add\(\s*'(\w+)'", path.read_text())]]


def parse(path, arguments, monkeypatch):
    monkeypatch.setattr(sys, 'path', [*sys.path])
    monkeypatch.setattr(sys, 'argv', [str(path), *arguments])
    return runpy.run_path(str(path), run_name='tool')['parse_args']()


@pytest.mark.parametrize(('path', 'command'), COMMANDS, ids=lambda value: str(value)[-30:])
def test_help_has_a_sentence_and_an_example_that_is_accepted(path, command, monkeypatch, capsys):
    monkeypatch.setenv('COLUMNS', '200')
    with pytest.raises(SystemExit, match='0'):
        parse(path, [*command.split(), '--help'], monkeypatch)
    text = capsys.readouterr().out
    description, example = text.split('\n\n')[1], text.split('\nexample:\n')[1]
    assert re.fullmatch(r'[A-Z][^\n]{10,110}\w\.', description)
    assert '\ncommon options:\n' in text or '{' in text
    words = shlex.split(example.replace('\\\n', ''))
    assert words[:2] == ['python', os.path.relpath(path)]
    args = parse(path, words[2:], monkeypatch)
    assert not command or args.command == command
    named = [vars(args).get('config'), *vars(args).get('configs', [])]
    assert all(find_source(name) for name in named if name)  # of a model that exists


def test_help_of_every_tool_needs_no_pytorch():
    assert {*(ROOT / 'tools').rglob('*.py')} == {*TOOLS}
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
