"""Draw where each visual token looks: ``python tools/show_tokens.py CONFIG CHECKPOINT PICTURE``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import add_trust_argument

    parser = argparse.ArgumentParser(description='Draw, for a few test images, where each visual token looks.')
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path of the checkpoint')
    parser.add_argument('picture', help='file to write; .png, .pdf or .svg')
    parser.add_argument('--images', type=int, default=6, help='number of test images, spread over the classes')
    parser.add_argument(
        '--module', type=int, default=0, help='whose tokenizer: 0 for the first VT module or level, -1 the last'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors(args.config, args.traceback):
        from vt.apis.show_tokens import show_tokens
        from vt.checkpoints.loading import weights_only

        with weights_only(unless=args.trust_checkpoint):
            show_tokens(args.config, args.checkpoint, args.picture, args.images, args.module)


if __name__ == '__main__':
    main()
