"""Command of ``vt publish``: weights as safetensors, with the config in the header."""

import argparse
from pathlib import Path

from vt.apis.model_zoo import get_model
from vt.checkpoints.publish import publish, read_header, show
from vt.checkpoints.run_folders import find_run
from vt.engine.config.steps import read_config
from vt.errors import UserError
from vt.files import write_atomically
from vt.hints import as_typed
from vt.serialization.timm_format import publish_for_timm


def publish_checkpoint(args: argparse.Namespace) -> None:
    """Write the weights of a checkpoint, or show what is in the header of a published one."""
    if args.checkpoint and args.checkpoint.is_dir() and (run := find_run(args.checkpoint)):
        args.config, args.checkpoint = args.config or (str(run[0]) if args.format else None), run[1]
    _check(args)
    if args.show and args.save_config:
        save_config(args.show, args.save_config)
    elif args.show:
        show(args.show)
    elif args.format:
        model = get_model(args.config, str(args.checkpoint))
        print(f'written to {publish_for_timm(args.model, model, args.out)}')
    else:
        path = publish(args.checkpoint, args.out, read_config(args.config).pretty_text if args.config else None)
        print(f'written to {path}')
        if 'config' in read_header(path):
            own = path.with_suffix('.py').name
            print('To predict with this file elsewhere, write its config, which is Python, first:')
            print(as_typed(f'vt publish --show {path.name} --save-config {own}'))
            print(as_typed(f'vt predict {own} {path.name} IMAGE'))


def _check(args: argparse.Namespace) -> None:
    if bool(args.show) == bool(args.out) or (args.show and args.checkpoint):
        raise UserError('give CHECKPOINT and OUT, or --show FILE')
    if args.format and not (args.config and args.model and args.out):
        raise UserError('--format requires CHECKPOINT, OUT, --config and --model, the name in timm')
    if args.model and not args.format:
        raise UserError('--model requires --format')
    if args.save_config and not (args.show and args.save_config.suffix == '.py'):
        raise UserError('--save-config FILE.py requires --show FILE.safetensors')


def save_config(path: Path, out: Path) -> None:
    """Write the config in the header of a published checkpoint to a file; it is Python, and is not run."""
    text = read_header(path).get('config')
    if text is None:
        raise UserError(f'{path} contains no config: use the config of its training')
    write_atomically(out, text)
