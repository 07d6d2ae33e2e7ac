"""Parser of the command-line tools, the options that they share, and how options change a config."""

import argparse
import ast
import contextlib
import os
import pkgutil
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vt._libraries import importing
from vt.engine.reporting import one_line_errors
from vt.errors import UserError
from vt.hints import as_typed

CONFIG = 'path of the config, name of a model, or timm:NAME for any classifier of timm'
CHECKPOINT = 'path of a checkpoint; or timm or torchvision, for their published weights'
# Rounds in which a thread waits actively for the others before it sleeps. With GNU OpenMP's own number, 300,000, two
# runs on the same cores take each other's time: a step took 2.1 to 10.5 s, and 2.3 s with this one.
SPINS = '20000'
LONGEST = 70  # characters of the folder for temporary files: paths of sockets have at most 104, and add 32
QUOTED = re.compile(r"""(['"])((?:(?!\1).)*)\1""")
WORD = re.compile(r"""('[^']*'|"[^"]*")|[^][(),\s][^][(),]*""")  # in quotes, or without, of a list
# Last parts of the keys of paths, which stay text: folders are named 2024, 1e3 or a,b.
PATHS = re.compile(r'load_from|(?!drop_path)(.*_)?(path|root|dir|file|folder|prefix|checkpoint)')


def run(command: str, args: argparse.Namespace, package: str = 'vt.commands.') -> None:
    """Import and call a command, ``'module:function'`` in a package, with the arguments of its tool.

    The import is done here, because ``--help`` should not import PyTorch. Files, names and logs are UTF-8 in any
    locale, for which Python is started again if need be. Checkpoints are read weights-only unless the
    arguments trust them. User errors are reported in one line that begins with the path of the config or the name of
    the command.
    """
    if sys.getfilesystemencoding() != 'utf-8' and 'utf8' not in sys._xoptions:  # PYTHONUTF8=0 and no locale of UTF-8
        os.execv(sys.executable, [sys.executable, '-X', 'utf8', *sys.orig_argv[1:]])
    # Forked processes, such as those of a data loader, ask for a GPU: NVML answers without starting CUDA.
    os.environ.setdefault('PYTORCH_NVML_BASED_CUDA_CHECK', '1')
    if 'OMP_WAIT_POLICY' not in os.environ:  # GNU OpenMP reads these when PyTorch is imported
        os.environ.setdefault('GOMP_SPINCOUNT', SPINS)
    if os.getcwd() not in sys.path:  # as with python -m vt, the modules in this folder can be imported
        sys.path.append(os.getcwd())
    with one_line_errors(getattr(args, 'config', None) or command.split(':')[1], args.traceback), _usable_folders():
        with importing():
            from vt.apis.model_zoo import find_source
            from vt.checkpoints.loading import weights_only
            from vt.engine.speed_settings import freeze_collector

            function = pkgutil.resolve_name(f'{package}{command}')
        if hasattr(args, 'config'):
            args.config = find_source(args.config)
        freeze_collector()
        with weights_only(unless=getattr(args, 'trust_checkpoint', False)):
            function(args)


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


class ConfigOptions(argparse.Action):
    """``KEY=VALUE`` options: numbers, text, lists without quotes, ``[a,b]`` or ``a,b``, or Python, ``{'type': 'A'}``.

    Values in quotes are text, and so are paths, except None and dicts.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[str],
        option_string: str | None = None,
    ) -> None:
        try:
            options = parse_options(values)
        except UserError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        setattr(namespace, self.dest, dict(getattr(namespace, self.dest) or {}) | options)


def parse_options(settings: Sequence[str]) -> dict[str, Any]:
    """Parse ``key=value`` settings; raise a UserError if one has another form."""
    options = {}
    for setting in settings:
        key, sign, text = setting.partition('=')
        if not sign:
            raise UserError(f'{setting!r} must have the form key=value')
        try:
            options[key] = parse_value(text, PATHS.fullmatch(key.rpartition('.')[2]) is not None)
        except (ValueError, SyntaxError, RecursionError) as error:
            words = "write a list as [a,b], and a dict with quotes around strings, {'type': 'A'}"
            raise UserError(f'{setting} cannot be parsed: {words}') from error
    return options


def parse_value(text: str, is_path: bool = False) -> Any:
    """Return the value of a setting; raise a ValueError or SyntaxError if it cannot be read."""
    if quoted := QUOTED.fullmatch(text):
        return quoted[2]
    is_dict = (text[:1], text[-1:]) == ('{', '}')
    if is_path and not is_dict:
        return None if text == 'None' else text
    is_python = is_dict or text[:2] == '[{' or 'dict(' in text
    if not (is_python or ',' in text or text[:1] in ('[', '(')):
        return _parse_word(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if is_python:
            raise
        value = ast.literal_eval(WORD.sub(lambda found: found[1] or repr(_parse_word(found[0])), text))
    if isinstance(value, tuple) and text[:1] != '(':
        value = list(value)
    if not isinstance(value, (list, tuple, dict)):
        raise ValueError(text)
    return value


def _parse_word(text: str) -> int | float | bool | str | None:
    """Return a number, True, False, None, or the text itself."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {'true': True, 'false': False, 'none': None}.get(text.lower(), text.strip())


class ToolParser(argparse.ArgumentParser):
    """Parser of a tool: one sentence above the options, an example below them.

    Args:
        description: what the tool does.
        example: a command, see :func:`vt.hints.as_typed`.
    """

    def __init__(self, description: str, example: str, **options: Any) -> None:
        words = dict(prog=Path(sys.argv[0]).name, description=description, epilog=f'example:\n  {as_typed(example)}')
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **words | options)

    def add_model_arguments(self, config: str = CONFIG) -> None:
        """Add CONFIG, with its help text, and CHECKPOINT."""
        self.add_argument('config', help=config)
        self.add_argument('checkpoint', help=CHECKPOINT)

    def add_common_options(self, config: bool = True, checkpoint: bool = True) -> None:
        """Add ``--traceback``, ``--cfg-options`` if the tool reads a config, ``--trust-checkpoint`` if a checkpoint."""
        group = self.add_argument_group('common options')
        if config:
            group.add_argument(
                '--cfg-options',
                nargs='+',
                action=ConfigOptions,
                metavar='KEY=VALUE',
                help='settings that override the config; a list as key="[a,b]" or key=a,b',
            )
        if checkpoint:
            group.add_argument(
                '--trust-checkpoint',
                action='store_true',
                help='load a checkpoint that can run code, instead of weights only; for files that you trust',
            )
        group.add_argument('--traceback', action='store_true', help='show the traceback of a user error')

    def add_run_options(self) -> None:
        """Add the options of both ``vt train`` and ``vt test``, named as in MMPretrain."""
        group = self.add_argument_group('the run')
        group.add_argument(
            '--work-dir', help='folder for logs, checkpoints and results (default: work_dirs/<config name>)'
        )
        group.add_argument('--amp', action='store_true', help='mixed precision: bfloat16, or float16 on older GPUs')
        group.add_argument(
            '--compile', action='store_true', help='compile backbone and neck: starts slowly, runs faster'
        )
        group.add_argument(
            '--launcher',
            choices=['auto', 'none', 'pytorch', 'slurm', 'mpi'],
            default='auto',
            help='what starts several processes (default: auto, from the environment variables)',
        )
        self.add_common_options()
