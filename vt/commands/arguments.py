"""What the command lines in ``tools/`` share: arguments, and how they enter a config."""

import argparse
import ast
import contextlib
import os
import pkgutil
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmengine.config import Config, DictAction

from vt._libraries import importing
from vt.engine.config_files import read_config
from vt.engine.errors import one_line_errors

BRACKETS = {'[': ']', '(': ')', '{': '}'}


def run(command: str, args: argparse.Namespace, package: str = 'vt.commands.') -> None:
    """Call a function of a package, ``'module:function'``, with the arguments of its command line.

    It is imported here, for ``--help`` needs no PyTorch. Every checkpoint is read weights-only unless the arguments
    trust it. A user error is one line that begins with the config's path or the function's name.
    """
    # Forked processes, such as a loader's, ask whether there is a GPU: NVML tells without starting CUDA.
    os.environ.setdefault('PYTORCH_NVML_BASED_CUDA_CHECK', '1')
    with one_line_errors(getattr(args, 'config', None) or command.split(':')[1], args.traceback):
        with importing():
            from vt.checkpoints.loading import weights_only

            function = pkgutil.resolve_name(f'{package}{command}')
        with weights_only(unless=getattr(args, 'trust_checkpoint', False)):
            function(args)


class ConfigOptions(DictAction):
    """mmengine's ``KEY=VALUE`` action, but a single value, such as a path, keeps its spaces.

    What begins with a bracket may be Python, ``[{'type': 'A'}]``; a list needs no quotes, ``[a,b]`` or ``a,b``.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[str],
        option_string: str | None = None,
    ) -> None:
        options = dict(getattr(namespace, self.dest) or {})
        for value in values:
            key, sign, text = value.partition('=')
            if not sign:
                raise argparse.ArgumentError(self, f'{value!r} is not of the form key=value')
            options[key] = self._parse(parser, key, text)
        setattr(namespace, self.dest, options)

    def _parse(self, parser: argparse.ArgumentParser, key: str, text: str) -> Any:
        if text[:1] in BRACKETS:
            with contextlib.suppress(ValueError, SyntaxError):  # names without quotes
                return ast.literal_eval(text)
        is_dict = (text[:1], text[-1:]) == ('{', '}') or 'dict(' in text
        if not (is_dict or ',' in text or text.startswith(('[', '('))):
            return parse_value(text.strip('\'"'))
        is_closed = all(text.count(begin) == text.count(end) for begin, end in BRACKETS.items())
        has_spaces = re.search(r'[^\s,[({]\s+[^\s,\])}]', text)  # which mmengine would take out
        try:
            if is_dict or has_spaces or not is_closed:
                raise ValueError
            alone = argparse.Namespace()
            super().__call__(parser, alone, [f'{key}={text}'])
            return getattr(alone, self.dest)[key]
        except (ValueError, AssertionError, RecursionError) as error:
            words = "a list is [a,b], a dict {'type': 'A'}, with quotes around its texts"
            raise argparse.ArgumentError(self, f'{key}={text} cannot be read: {words}') from error


def parse_value(text: str) -> int | float | bool | str | None:
    """A number, ``true``, ``false``, ``None``, or the text itself."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return {'true': True, 'false': False, 'none': None}.get(text.lower(), text)


def parse_options(settings: Sequence[str]) -> dict[str, Any]:
    """``key=value`` settings as ``--cfg-options`` reads them."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=ConfigOptions, default={})
    return parser.parse_args(['--cfg-options', *settings] if settings else []).cfg_options


def add_trust_argument(parser: argparse.ArgumentParser) -> None:
    """The flag of every tool that loads a checkpoint."""
    parser.add_argument(
        '--trust-checkpoint',
        action='store_true',
        help='run code that a checkpoint asks for, rather than read weights alone; for files that you trust',
    )


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of both ``tools/train.py`` and ``tools/test.py``, named as MMPretrain names them."""
    parser.add_argument('--work-dir', help='where logs, checkpoints and results go (default: work_dirs/<config name>)')
    parser.add_argument('--amp', action='store_true', help='mixed precision: bfloat16, or float16 on GPUs without it')
    parser.add_argument(
        '--compile', action='store_true', help='compile backbone and neck: slow at first, pays in long runs'
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=ConfigOptions,
        help='settings that override the config, as key=value; a list as key="[a,b]" or key=a,b',
    )
    parser.add_argument(
        '--launcher',
        choices=['auto', 'none', 'pytorch', 'slurm', 'mpi'],
        default='auto',
        help='who starts several processes; by default the environment of the process tells',
    )
    add_trust_argument(parser)
    parser.add_argument('--local-rank', '--local_rank', type=int, default=0, help='set by launchers')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')


def load_config(args: argparse.Namespace) -> Config:
    """Read a config, enter ``--cfg-options`` and the common arguments, check it, and meet the other processes."""
    from vt.engine.checks.config import check_config  # it imports PyTorch, and --help needs none
    from vt.engine.processes.distributed import join_processes

    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    if args.compile and not (cfg.get('speed') or {}).get('compile'):  # else it has its options
        cfg.merge_from_dict({'speed.compile': True})
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = os.path.join('work_dirs', Path(args.config).stem)
    check_config(cfg, args.cfg_options or {})
    join_processes(cfg)
    return cfg
