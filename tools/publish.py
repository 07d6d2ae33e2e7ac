"""Publish a checkpoint's weights as safetensors: ``python tools/publish.py CHECKPOINT OUT.safetensors``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import add_trust_argument

    parser = argparse.ArgumentParser(
        description="Publish a checkpoint's weights as safetensors, with the config and more in the file's header."
    )
    parser.add_argument('checkpoint', nargs='?', type=Path, help='path of the checkpoint')
    parser.add_argument(
        'out', nargs='?', type=Path, help='file to write; .safetensors; digits of its content enter its name'
    )
    parser.add_argument('--config', type=Path, help="path of the config (default: the checkpoint's own text)")
    parser.add_argument(
        '--metrics', type=Path, help='what tools/test.py --out FILE.json --out-item metrics wrote of this checkpoint'
    )
    parser.add_argument('--show', type=Path, metavar='FILE', help='print what a published checkpoint says of itself')
    parser.add_argument(
        '--format',
        choices=('timm', 'torchvision', 'huggingface'),
        help="write weights that this library's own model loads (default: VT's); for Hugging Face OUT is a folder",
    )
    parser.add_argument('--model', metavar='NAME', help="with --format: the library's name of the network")
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt._libraries import importing
    from vt.engine.errors import one_line_errors

    with one_line_errors('publish', args.traceback):
        with importing():
            from vt.checkpoints.loading import weights_only
            from vt.checkpoints.publishing import publish, show
            from vt.engine.config_files import read_config
            from vt.errors import UserError
        if bool(args.show) == bool(args.out) or (args.show and args.checkpoint):
            raise UserError('give CHECKPOINT and OUT, or --show FILE')
        if args.format and not (args.config and args.model and args.out):
            raise UserError('--format needs CHECKPOINT, OUT, --config and --model, the name in that library')
        if (args.model and not args.format) or (args.metrics and args.format):
            raise UserError('--model is for --format, and --metrics is for files of VT: leave it out')
        with weights_only(unless=args.trust_checkpoint):
            if args.show:
                show(args.show)
            elif args.format:
                from vt.apis.library_formats import publish_as

                path = publish_as(args.format, args.model, str(args.config), args.checkpoint, args.out)
                print(f'written to {path}')
            else:
                config = read_config(str(args.config)).pretty_text if args.config else None
                print(f'written to {publish(args.checkpoint, args.out, config, args.metrics)}')


if __name__ == '__main__':
    main()
