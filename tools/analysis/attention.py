"""Where attention goes: ``python tools/analysis/attention.py COMMAND CONFIG [CHECKPOINT] ...``; ``--help``."""

import argparse


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(description="Where attention goes, in numbers: the paper's section 6.")
    commands = parser.add_subparsers(dest='command', required=True)
    checkpoint = 'path of the checkpoint; or timm, torchvision or huggingface: their weights'
    tokens = commands.add_parser('tokens', help='of visual tokens: entropy, gain on the foreground, reach')
    tokens.add_argument('config', help='path of the config of a classifier or segmentor with visual tokens')
    tokens.add_argument('checkpoint', help=checkpoint)
    tokens.add_argument(
        '--background', type=int, nargs='+', default=[0], help="a data set's classes that are background (default: 0)"
    )
    locality = commands.add_parser('locality', help="of a ViT: the share of each layer's attention on patches around")
    locality.add_argument('config', help='path of the config of a ViT, or mmpretrain::FOLDER/NAME.py')
    locality.add_argument('checkpoint', nargs='?', help=f'{checkpoint} (default: random)')
    locality.add_argument('--plot', help='draw it, as figure 5 does, to this file; .png, .pdf or .svg')
    objects = commands.add_parser('objects', help='on the objects that a task of relations has to compare')
    objects.add_argument('config', help='path of the config of a classifier on such a task')
    objects.add_argument('checkpoint', help=checkpoint)
    objects.add_argument('--plot', help='draw four images of it; .jpg, .png, .pdf or .svg')
    objects.add_argument('--parts', nargs='+', help='names of the parts to draw, as the table has them (default: all)')
    reach = commands.add_parser('reach', help='draw from where one token takes what it becomes, a cell an attention')
    reach.add_argument('configs', nargs='+', help='paths of configs with a vt.TokenBackbone')
    reach.add_argument('--image', help='image to show them (default: a scene of digits)')
    reach.add_argument('--stage', type=int, default=2, help='whose blocks, or the last one (default: 2)')
    reach.add_argument(
        '--place', type=float, nargs=2, default=(0.4, 0.6), help='row and column of the token, 0 to 1 (default: .4 .6)'
    )
    reach.add_argument('--out', required=True, help='file to write: .jpg, .png, .pdf or .svg')
    reach.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the configs, as key=value'
    )
    reach.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    for command in (tokens, locality, objects):
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
    beside = {'locality': 'locality', 'objects': 'influence', 'reach': 'influence'}  # modules of this folder
    if args.command in beside:
        run(f'{beside[args.command]}:report_{args.command}', args, package='')
    else:
        run(f'attention:report_{args.command}', args)
