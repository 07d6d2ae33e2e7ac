"""Look at tokens in a browser, or in a report: ``python tools/explore.py CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(
        description='A page on this machine alone: what a model predicts on images, where its tokens look, what a '
        'pixel reads of them and how they relate; or the same as a report.'
    )
    parser.add_argument('config', help='path of the config, or the name of a model')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument(
        '--compare', nargs=2, metavar=('CONFIG', 'CHECKPOINT'), help='a second model, shown beside the first'
    )
    parser.add_argument(
        '--inputs', nargs='+', default=[], metavar='IMAGE', help='images to begin with, or folders of them'
    )
    parser.add_argument(
        '--images', type=int, default=6, help='number of test images at hand, spread over the classes (default: 6)'
    )
    parser.add_argument('--port', type=int, default=7860, help='of the page, on 127.0.0.1 (default: 7860)')
    parser.add_argument(
        '--html', type=Path, help='file for a report of these inputs, or else of test images, instead of a page'
    )
    parser.add_argument('--device', help='where to compute (default: the CPU)')
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override both configs, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('explore:explore', parse_args())
