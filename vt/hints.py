"""Commands in messages, in the form in which the user started VT."""

import os
import shlex
import sys
from pathlib import Path

from vt.files import PACKAGE, ROOT

STARTS = ('vt', 'python -m vt')


def typed_start() -> str:
    """Return what the user typed before the arguments: ``vt train``, ``python -m vt train``, ``python own.py``.

    The path of a file is from the working directory, where it is in it.
    """
    program, here = Path(sys.argv[0]), Path.cwd()
    if sys.argv[0].startswith(tuple(f'{start} ' for start in STARTS)):  # as vt.cli.main notes it
        return sys.argv[0]
    return shlex.join(['python', str(program.relative_to(here) if program.is_relative_to(here) else program)])


def as_typed(command: str) -> str:
    """Return a command such as ``vt train CONFIG`` in the form of the running one; commands without ``vt`` stay.

    Other forms are ``python -m vt train CONFIG``, as :mod:`vt.cli.main` notes it, and, in a clone, ``python
    tools/train.py CONFIG``. For other programs, such as a notebook, it is the second form, which always works.
    """
    start, name, *rest = command.split(' ', 2)
    if start != 'vt':
        return command
    if ROOT != PACKAGE / '.mim' and Path(sys.argv[0]).resolve().is_relative_to(ROOT.resolve() / 'tools'):
        (tool,) = (ROOT / 'tools').rglob(f'{name.replace("-", "_")}.py')
        return ' '.join(['python', os.path.relpath(tool), *rest])
    typed = typed_start()
    start = next((start for start in STARTS if typed.startswith(f'{start} ')), STARTS[-1])
    return ' '.join([start, name, *rest])
