"""Measure the attention of visual tokens: ``vt attention CONFIG CHECKPOINT``."""

import argparse

from vt.commands.arguments import CONFIG, ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        "Measure entropy, share on the foreground and reach of visual tokens, as in the paper's section 6.",
        'vt attention vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth',
    )
    parser.add_model_arguments(f'{CONFIG}, a classifier or segmentor with visual tokens')
    parser.add_argument(
        '--background', type=int, nargs='+', default=[0], help='classes that are background (default: 0)'
    )
    parser.add_argument('--images', type=int, default=64, help='test images, spread over the set (default: 64)')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('attention:report_tokens', parse_args())
