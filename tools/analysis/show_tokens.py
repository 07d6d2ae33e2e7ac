"""Draw where each visual token looks: ``python tools/analysis/show_tokens.py CONFIG CHECKPOINT [IMAGE ...]``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(
        description='Draw where each visual token looks, or the class token of an MViT, on given images or a few '
        'images or videos of the test set.'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument(
        'inputs',
        nargs='*',
        type=Path,
        metavar='IMAGE',
        help='images to look at, of any size (default: test images)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='file to write; .png, .pdf or .svg (default: tokens.png in the work directory of the config, else here)',
    )
    parser.add_argument('--images', type=int, default=6, help='number of test images, spread over the classes')
    parser.add_argument(
        '--module',
        type=int,
        default=0,
        help='whose: 0 for the first VT module or level, or block of an MViT; -1 the last',
    )
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('attention:show_tokens', parse_args())
