"""Tools in this process, for errors that end them before their work."""

import itertools
import logging
import runpy
from subprocess import CompletedProcess

from tool_runner import ROOT, assert_one_line

_numbers = itertools.count()


def call(tool, *arguments, cwd, monkeypatch, capsys):
    """As :func:`tool_runner.run`."""
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(logging, 'raiseExceptions', False)  # handlers of earlier calls write to what is closed
    monkeypatch.setattr('sys.argv', [tool, *map(str, arguments)])
    capsys.readouterr()
    try:
        code = runpy.run_path(str(ROOT / 'tools' / tool), run_name='__main__') and 0
    except SystemExit as end:
        code = end.code
    return CompletedProcess(tool, code, *capsys.readouterr())


def refuse(folder, text, options=(), monkeypatch=None, capsys=None, arguments=()):
    """Return the line on standard error with which training by a config's text ends; it wrote no checkpoint."""
    name = f'c{next(_numbers)}'  # mmengine keeps loggers by the names of configs
    (folder / f'{name}.py').write_bytes(text if isinstance(text, bytes) else text.encode())
    options = ['--cfg-options', *options] if options else []
    result = call('train.py', f'{name}.py', *arguments, *options, cwd=folder, monkeypatch=monkeypatch, capsys=capsys)
    assert_one_line(result, '')
    assert '(train)' not in result.stdout
    assert not [*folder.glob(f'work_dirs/{name}/*.pth')]
    return next(line for line in result.stderr.splitlines() if line.startswith('error: '))
