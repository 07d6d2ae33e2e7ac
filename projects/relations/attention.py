"""Measure and draw where attention looks: ``python -m projects.relations.attention COMMAND CONFIG ...``."""

import argparse

from vt.cli.main import run
from vt.cli.parser import CHECKPOINT, CommandParser

MODULES = dict(locality='locality', objects='influence', reach='influence', tokens='token_measures')  # by command


def parse_args() -> argparse.Namespace:
    tool = 'python -m projects.relations.attention'
    parser = CommandParser('Measure and draw where attention looks.', f'{tool} objects --help', prog=tool)
    commands = parser.add_subparsers(dest='command', required=True)

    def add(name: str, help: str, example: str) -> CommandParser:
        return commands.add_parser(name, help=help, description=f'{help.capitalize()}.', example=f'{tool} {example}')

    locality = add(
        'locality',
        "measure the share of a ViT's attention on neighbouring patches, by layer",
        'locality configs/deit/deit-small_digits.py --plot locality.png',
    )
    locality.add_argument('config', help='path of the config of a ViT, or mmpretrain::FOLDER/NAME.py')
    locality.add_argument('checkpoint', nargs='?', help=f'{CHECKPOINT} (default: random weights)')
    locality.add_argument('--plot', help='file for a figure like figure 5; .png, .pdf or .svg')
    objects = add(
        'objects',
        'measure how much positions on an object take from the object it is compared with',
        'objects projects/relations/configs/swin_2560-iters_svrt-1.py \\\n'
        '      work_dirs/swin_2560-iters_svrt-1/iter_2560.pth --plot objects.png',
    )
    objects.add_model_arguments('path of the config of a classifier on a relational task')
    objects.add_argument('--plot', help='file for a figure of four images; .jpg, .png, .pdf or .svg')
    objects.add_argument('--parts', nargs='+', help='names of the parts to draw, as in the table (default: all)')
    reach = add(
        'reach',
        'draw from which positions one token takes its new value, one cell per attention',
        'reach configs/swin/swin-tiny_16xb64-300e_in1k.py --out reach.png',
    )
    reach.add_argument('configs', nargs='+', metavar='CONFIG', help='paths of configs with a vt.TokenBackbone')
    reach.add_argument('--image', help='image to draw on (default: a scene of digits)')
    reach.add_argument('--stage', type=int, default=2, help='stage of the blocks, or the last one (default: 2)')
    reach.add_argument(
        '--place', type=float, nargs=2, default=(0.4, 0.6), help='row and column of the token, 0 to 1 (default: .4 .6)'
    )
    reach.add_argument('--out', required=True, help='file for the figure; .jpg, .png, .pdf or .svg')
    reach.add_common_options(checkpoint=False)
    tokens = add(
        'tokens',
        "measure entropy, share on the foreground and reach of visual tokens, as in the paper's section 6",
        'tokens configs/vt_fpn/vt-fpn_r18_digit-scenes.py work_dirs/vt-fpn_r18_digit-scenes/iter_1200.pth',
    )
    tokens.add_model_arguments('path of the config of a classifier or segmentor with visual tokens')
    tokens.add_argument(
        '--background', type=int, nargs='+', default=[0], help='classes that are background (default: 0)'
    )
    for command in (locality, objects, tokens):
        command.add_argument('--images', type=int, default=64, help='test images, spread over the set (default: 64)')
        command.add_argument('--out', help='JSON file for the measurements')
        command.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    run(f'{MODULES[args.command]}:report_{args.command}', args, package='projects.relations.')
