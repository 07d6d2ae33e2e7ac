"""Publish a checkpoint's weights as safetensors: ``vt publish CHECKPOINT OUT.safetensors``."""

import argparse
import os
import sys
from pathlib import Path

from vt.commands.arguments import CONFIG, ToolParser
from vt.hints import as_typed


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        "Publish a checkpoint's weights as safetensors, with its config in the header of the file.",
        'vt publish work_dirs/vt-resnet18_digits/epoch_15.pth vt-resnet18_digits.safetensors',
    )
    parser.add_argument('checkpoint', nargs='?', type=Path, help='path of a checkpoint')
    parser.add_argument(
        'out', nargs='?', type=Path, help='file to write, .safetensors; a hash of its content is added to the name'
    )
    header = parser.add_argument_group('header of the file')
    header.add_argument('--config', help=f'{CONFIG} (default: the text in the checkpoint)')
    header.add_argument(
        '--show', type=Path, metavar='FILE', help='print the header of a published checkpoint, and exit'
    )
    header.add_argument(
        '--save-config', type=Path, metavar='FILE', help='with --show: write the config of the header, .py, instead'
    )
    formats = parser.add_argument_group('other formats')
    formats.add_argument('--format', choices=('timm',), help="write weights for timm's own model")
    formats.add_argument('--model', metavar='NAME', help='with --format: name of the model in timm')
    parser.add_common_options(config=False)
    return parser.parse_args()


def save_config(path: Path, out: Path) -> None:
    """Write the config in the header of a published checkpoint to a file; it is Python, and is not run."""
    from vt.checkpoints.publishing import read_header
    from vt.errors import UserError
    from vt.files import write_atomically

    text = read_header(path).get('config')
    if text is None:
        raise UserError(f'{path} contains no config: use the config of its training')
    write_atomically(out, text)


def main() -> None:
    args = parse_args()
    from vt._libraries import importing
    from vt.engine.reporting import one_line_errors

    sys.path.append(os.getcwd())  # for what a config imports
    with one_line_errors('publish', args.traceback):
        with importing():
            from vt.apis.model_zoo import find_source
            from vt.checkpoints.loading import weights_only
            from vt.checkpoints.publishing import publish, read_header, show
            from vt.engine.prepare import read_config
            from vt.errors import UserError
        if bool(args.show) == bool(args.out) or (args.show and args.checkpoint):
            raise UserError('give CHECKPOINT and OUT, or --show FILE')
        if args.format and not (args.config and args.model and args.out):
            raise UserError('--format requires CHECKPOINT, OUT, --config and --model, the name in timm')
        if args.model and not args.format:
            raise UserError('--model requires --format')
        if args.save_config and not (args.show and args.save_config.suffix == '.py'):
            raise UserError('--save-config FILE.py requires --show FILE.safetensors')
        with weights_only(unless=args.trust_checkpoint):
            if args.show:
                if args.save_config:
                    save_config(args.show, args.save_config)
                else:
                    show(args.show)
            elif args.format:
                from vt.apis.timm_format import publish_for_timm

                path = publish_for_timm(args.model, args.config, args.checkpoint, args.out)
                print(f'written to {path}')
            else:
                config = read_config(find_source(args.config)).pretty_text if args.config else None
                path = publish(args.checkpoint, args.out, config)
                print(f'written to {path}')
                if 'config' in read_header(path):
                    own = path.with_suffix('.py').name
                    print('To predict with this file elsewhere, write its config, which is Python, first:')
                    print(as_typed(f'vt publish --show {path.name} --save-config {own}'))
                    print(as_typed(f'vt predict {own} {path.name} IMAGE'))


if __name__ == '__main__':
    main()
