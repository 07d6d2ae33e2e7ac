"""Find the command that a person typed, parse its arguments, and run it."""

import argparse
import contextlib
import io
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path

import vt
from vt._libraries import importing
from vt.engine.reporting import one_line_errors
from vt.hints import STARTS

from .commands import COMMANDS, Command
from .parser import CommandParser

# Rounds in which a thread waits actively for the others before it sleeps. With GNU OpenMP's own number, 300,000, two
# runs on the same cores take each other's time: a step took 2.1 to 10.5 s, and 2.3 s with this one.
SPINS = '20000'
LONGEST = 70  # characters of the folder for temporary files: paths of sockets have at most 104, and add 32


def main(name: str | None = None) -> None:
    """Run a command with the arguments of the process, of which the first is its name unless it is given."""
    if name is None:
        start = STARTS[Path(sys.argv[0]).name == '__main__.py']
        given, *arguments = sys.argv[1:] or ['--help']
        if given in ('-h', '--help'):
            print(describe_commands(start))
            return
        if given == '--version':
            print(vt.__version__)
            return
        name = choose(given.replace('_', '-'), sorted(COMMANDS), start)
        sys.argv = [f'{start} {name}', *arguments]
    command = COMMANDS[name]
    args = parse(command)
    run(command.function(args) if callable(command.function) else command.function, args)


def parse(command: Command) -> argparse.Namespace:
    """Parse the arguments of the process for a command."""
    parser = CommandParser(command.description, command.example, prog=Path(sys.argv[0]).name)
    command.add_arguments(parser)
    # Positional arguments may stand on both sides of options, which commands of a command do not support.
    whole = command.name in ('report', 'dist-train')
    return parser.parse_args() if whole else parser.parse_intermixed_args()


def choose(given: str, names: list[str], start: str) -> str:
    """Return the command with a name, or the only one that begins with it; exit with an error if there is none."""
    begun = [given] if given in names else [name for name in names if name.startswith(given)]
    if len(begun) != 1:
        near = begun or get_close_matches(given, names)
        advice = f'did you mean {" or ".join(near)}? ' if near else ''
        print(f'error: there is no command {given!r}: {advice}{start} --help lists all', file=sys.stderr)
        sys.exit(1)
    return begun[0]


def describe_commands(start: str) -> str:
    """Return the text of ``vt --help``: the commands by task, each with an example."""
    lines = [f'usage: {start} COMMAND ...      {start} COMMAND --help tells more; the first letters are enough']
    for task, commands in groupby(COMMANDS.values(), lambda command: command.task):
        lines += ['', f'{task}:']
        for command in commands:
            example = f'{start} {command.example.partition(" ")[2]}'
            lines += [f'  {command.name:16} {command.description}', f'  {"":16} {example}']
    return '\n'.join(lines)


def run(function: str, args: argparse.Namespace, package: str = 'vt.commands.') -> None:
    """Import and call a command, ``'module:function'`` in a package, with its arguments.

    The import is done here, because ``--help`` should not import PyTorch. Files, names and logs are UTF-8 in any
    locale, for which Python is started again if need be. Checkpoints are read weights-only unless the
    arguments trust them. User errors are reported in one line that begins with the path of the config or the name of
    the command.
    """
    if sys.getfilesystemencoding() != 'utf-8' and 'utf8' not in sys._xoptions:  # PYTHONUTF8=0 and no locale of UTF-8
        os.execv(sys.executable, [sys.executable, '-X', 'utf8', *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):  # a pipe of Windows has few characters, and so has PYTHONIOENCODING=ascii
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    # Forked processes, such as those of a data loader, ask for a GPU: NVML answers without starting CUDA.
    os.environ.setdefault('PYTORCH_NVML_BASED_CUDA_CHECK', '1')
    if 'OMP_WAIT_POLICY' not in os.environ:  # GNU OpenMP reads these when PyTorch is imported
        os.environ.setdefault('GOMP_SPINCOUNT', SPINS)
    if (here := str(Path.cwd())) not in sys.path:  # as with python -m vt, the modules in this folder can be imported
        sys.path.append(here)
    about = [*getattr(args, 'words', []), getattr(args, 'config', None) or function.split(':')[1]][0]
    with one_line_errors(about, args.traceback), _usable_folders():
        with importing():
            from vt.apis.model_zoo import find_source
            from vt.checkpoints.loading import weights_only
            from vt.cli.words import read_words
            from vt.engine.run.speed_settings import freeze_collector
            from vt.logs import print_lines

            call = pkgutil.resolve_name(f'{package}{function}')
        print_lines()
        if hasattr(args, 'words'):
            read_words(args)
        elif getattr(args, 'config', None):
            args.config = find_source(args.config)
        freeze_collector()
        with weights_only(unless=getattr(args, 'trust_checkpoint', False)):
            call(args)


@contextlib.contextmanager
def _usable_folders() -> Iterator[None]:
    """Give a user without a home, as in containers, one for caches, and worker processes a short path for sockets."""
    with contextlib.suppress(FileNotFoundError):  # none can be written: what needs one will say so
        if len(os.fsencode(tempfile.gettempdir())) > LONGEST:
            os.environ['TMPDIR'], tempfile.tempdir = '/tmp', None
    if os.path.isabs(os.environ.get('HOME', os.path.expanduser('~'))):
        yield
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ['HOME'] = folder
        yield
