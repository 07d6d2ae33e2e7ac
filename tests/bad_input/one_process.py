"""Training by a config's text in this process, for errors that end it before its first iteration."""

import itertools
import runpy

import pytest
from tool_runner import ROOT

_numbers = itertools.count()


def refuse(folder, text, options=(), monkeypatch=None, capsys=None, arguments=()):
    """Return the line on standard error with which ``tools/train.py`` ends; it wrote no checkpoint and no traceback."""
    name = f'c{next(_numbers)}'  # mmengine keeps loggers by the names of configs
    (folder / f'{name}.py').write_bytes(text if isinstance(text, bytes) else text.encode())
    options = ['--cfg-options', *options] if options else []
    monkeypatch.chdir(folder)
    monkeypatch.setattr('sys.argv', ['train.py', f'{name}.py', *arguments, *options])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / 'tools/train.py'), run_name='__main__')
    output = capsys.readouterr()
    lines = [line for line in output.err.splitlines() if line.startswith('error: ')]
    assert (ended.value.code, len(lines)) == (1, 1), output.err
    assert 'Traceback' not in output.err
    assert '(train)' not in output.out
    assert not [*folder.glob(f'work_dirs/{name}/*.pth')]
    return lines[0]
