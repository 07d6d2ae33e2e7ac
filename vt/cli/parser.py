"""Parser of the commands, and the options that they share."""

import argparse
from typing import Any, NoReturn

from vt.errors import UserError
from vt.hints import as_typed
from vt.key_values import parse_options

CONFIG = 'name of a model, timm:NAME for any of timm, path of a config, or folder of a run or a saved model'
CHECKPOINT = 'path of a checkpoint, or timm or torchvision for their published weights (default: the best of the run)'


class ConfigOptions(argparse.Action):
    """``KEY=VALUE`` options: numbers, text, lists without quotes, ``[a,b]`` or ``a,b``, or Python, ``{'type': 'A'}``.

    Values in quotes are text, and so are paths, except None and dicts.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            options = parse_options(values)
        except UserError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        setattr(namespace, self.dest, dict(getattr(namespace, self.dest) or {}) | options)


class CommandParser(argparse.ArgumentParser):
    """Parser of a command: one sentence above the options, an example below them.

    Args:
        description: what the command does.
        example: a command, see :func:`vt.hints.as_typed`.
    """

    def __init__(self, description: str, example: str, **options: Any) -> None:
        words = dict(description=description, epilog=f'example:\n  {as_typed(example)}')
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **words | options)

    takes_settings = False

    def error(self, message: str) -> NoReturn:
        """Exit with a message about wrong options; settings are no options."""
        super().error(message + '; settings have no dashes: epochs=30' * self.takes_settings)

    def add_words(self, config: str = CONFIG, checkpoint: bool = False, others: str = '') -> None:
        """Add MODEL and NAME=VALUE, and CHECKPOINT and other words if the command takes them.

        They are told apart by :func:`vt.cli.words.read_words`: nothing else in a command line is so without an option.

        Args:
            config: help text of MODEL.
            checkpoint: whether it takes a checkpoint.
            others: name of the other words, such as ``INPUT``, which become ``args.inputs``; empty if it takes none.
        """
        self.takes_settings = True
        words = ['MODEL', *(['[CHECKPOINT]'] if checkpoint else []), *([f'[{others} ...]'] if others else [])]
        text = f'MODEL: {config}.'
        text += f' CHECKPOINT: {CHECKPOINT}.' if checkpoint else ''
        text += ' NAME=VALUE: settings, such as data=photos epochs=30; `vt settings` lists them'
        self.add_argument('words', nargs='*', metavar=' '.join([*words, '[NAME=VALUE ...]']), help=text)
        self.add_argument('--device', help='cpu, cuda, or a GPU such as cuda:1 (default: a GPU if there is one)')
        self.set_defaults(takes_checkpoint=checkpoint, others=f'{others.lower()}s' if others else None)

    def add_common_options(self, config: bool = True, checkpoint: bool = True) -> None:
        """Add ``--traceback``, ``--cfg-options`` for a config, and ``--trust-checkpoint`` for a checkpoint."""
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
