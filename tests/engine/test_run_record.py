"""Where a measurement is from."""

import shlex
import sys

import pytest

from vt.engine.run_record import describe_origin


@pytest.mark.parametrize(('program', 'shown'), [('tools/a b.py', "'tools/a b.py'"), ('../other.py', None)])
def test_a_command_names_no_folder_of_the_machine(tmp_path, monkeypatch, program, shown):
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    path = (tmp_path / 'here' / program).resolve()
    monkeypatch.setattr(sys, 'argv', [str(path), 'config.py', '--x'])
    assert describe_origin()['command'] == f'python {shown or shlex.quote(str(path))} config.py --x'
    monkeypatch.setattr(sys, 'argv', [program, 'config.py'])
    assert describe_origin()['command'] == f'python {shown or program} config.py'
