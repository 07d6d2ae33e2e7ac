"""Draw the attention of each visual token: ``vt show-tokens CONFIG CHECKPOINT [IMAGE ...]``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Draw the attention of each visual token, or of the class token of an MViT.',
        'vt show-tokens vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth --out tokens.png',
    )
    parser.add_model_arguments()
    parser.add_argument(
        'inputs',
        nargs='*',
        type=Path,
        metavar='IMAGE',
        help='images of any size (default: images or videos of the test set)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='file to write, .png, .pdf or .svg (default: tokens.png in the work directory of the config, or here)',
    )
    parser.add_argument(
        '--images', type=int, default=6, help='number of test images, spread over the classes (default: 6)'
    )
    parser.add_argument(
        '--module',
        type=int,
        default=0,
        help='number of the VT module or level, or of the block of an MViT; -1 is the last (default: 0)',
    )
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('attention:show_tokens', parse_args())
