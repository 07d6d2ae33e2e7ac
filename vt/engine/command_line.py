"""What the command lines in ``tools/`` share: arguments, and how they enter a config."""

import argparse
import functools
import os
import sys
from pathlib import Path
from typing import Any

from mmengine.config import Config, DictAction

from vt._libraries import import_library


class ConfigOptions(DictAction):
    """mmengine's ``KEY=VALUE`` action, but a single value, such as a path, keeps its spaces."""

    @staticmethod
    def _parse_iterable(val: str) -> Any:
        if ',' in val or val.startswith(('[', '(')):
            return DictAction._parse_iterable(val)
        return DictAction._parse_int_float_bool(val.strip('\'"'))

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[str],
        option_string: str | None = None,
    ) -> None:
        for value in values:
            if '=' not in value:
                raise argparse.ArgumentError(self, f'{value!r} is not of the form key=value')
        super().__call__(parser, namespace, values, option_string)


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
    parser.add_argument('--amp', action='store_true', help='mixed precision (bfloat16 where there is no GPU)')
    parser.add_argument('--compile', action='store_true', help='compile the model: minutes at first, pays in long runs')
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


def read_config(path: str) -> Config:
    """Read a config, and import the package whose parts it names without a prefix.

    A config is Python: to read it is to run it and all that it inherits, and standard error says so.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: running it fails; the line names its file and line.
    """
    from vt.engine.errors.configs import naming_config

    require_file(path, 'config')
    announce(f'{path} and the configs it inherits')
    with naming_config(path):
        cfg = Config.fromfile(path)
    import_library(cfg.get('default_scope', 'mmpretrain'))
    return cfg


@functools.cache  # once is enough for one that is read again
def announce(configs: str) -> None:
    """Say on standard error which configs are run to be read."""
    if os.environ.get('RANK', '0') == '0':
        print(f'Running {configs}: a config is Python', file=sys.stderr)


def load_config(args: argparse.Namespace) -> Config:
    """Read a config, enter ``--cfg-options``, then the common arguments and the libraries' dataloader defaults."""
    from vt.engine.checks.config_check import check_config
    from vt.engine.processes.process_variables import set_process_variables  # it imports PyTorch, and --help needs none

    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config)
    if args.cfg_options is not None:
        enter_options(cfg, args.cfg_options)
    if args.compile:
        cfg.merge_from_dict({'speed.compile': True})
    cfg.launcher = set_process_variables(args.launcher)
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = os.path.join('work_dirs', Path(args.config).stem)
    check_config(cfg)
    set_loader_defaults(cfg)
    return cfg


def enter_options(cfg: Config, options: dict[str, Any]) -> None:
    """Enter ``--cfg-options``.

    Raises:
        ValueError: nothing would read an option, or the config has no place for it.
    """
    from vt.engine.checks.option_check import check_options

    check_options(cfg, options)
    for key, value in options.items():
        try:
            cfg.merge_from_dict({key: value})
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f'--cfg-options {key}={value}: {" ".join(str(error.args[0]).split())}') from error


def set_loader_defaults(cfg: Config) -> None:
    """Enter what the libraries' own tools set for dataloaders where a config does not."""
    import torch  # not above: --help needs none

    for split in ('train', 'val', 'test'):
        loader = cfg.get(f'{split}_dataloader')
        if loader is not None:
            loader.setdefault('pin_memory', torch.cuda.is_available())
            loader.setdefault('persistent_workers', loader.get('num_workers', 0) > 0)
            if cfg.get('default_scope', 'mmpretrain') == 'mmpretrain':
                loader.setdefault('collate_fn', dict(type='default_collate'))


def require_file(path: str, what: str) -> None:
    """Raise ``FileNotFoundError`` unless ``path`` is a file; an address (``https://...``) is left to the loader."""
    if '://' not in path and not Path(path).is_file():
        raise FileNotFoundError(f'there is no {what} {path}')
