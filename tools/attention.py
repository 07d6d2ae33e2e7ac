"""Where attention goes, in numbers: ``python tools/attention.py {tokens,locality} CONFIG [CHECKPOINT] ...``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(description="Where attention goes, in numbers: the paper's section 6.")
    commands = parser.add_subparsers(dest='command', required=True)
    tokens = commands.add_parser('tokens', help='of visual tokens: entropy, gain on the foreground, reach')
    tokens.add_argument('config', help='path of the config of a classifier or segmentor with visual tokens')
    tokens.add_argument('checkpoint', help='path of the checkpoint')
    tokens.add_argument(
        '--background', type=int, nargs='+', default=[0], help="a data set's classes that are background (default: 0)"
    )
    locality = commands.add_parser('locality', help="of a ViT: the share of each layer's attention on patches around")
    locality.add_argument('config', help='path of the config of a ViT, or mmpretrain::FOLDER/NAME.py')
    locality.add_argument('checkpoint', nargs='?', help='path of the checkpoint (default: random weights)')
    locality.add_argument('--plot', help='draw it, as figure 5 does, to this picture; .png, .pdf or .svg')
    for command in (tokens, locality):
        command.add_argument('--images', type=int, default=64, help='test images, spread over the set (default: 64)')
        command.add_argument('--out', help='write the figures to this JSON file')
        command.add_argument(
            '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
        )
        add_trust_argument(command)
        command.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    args = parse_args()
    run(f'attention:report_{args.command}', args)
