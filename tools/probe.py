"""Linear probe and nearest neighbours on a frozen model's features: ``python tools/probe.py CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    from vt.commands.arguments import ConfigOptions, add_trust_argument

    parser = argparse.ArgumentParser(description="Linear probe and nearest neighbours on a frozen model's features.")
    parser.add_argument('config', help='path of the config, or name of a model')
    parser.add_argument('checkpoint', help='path of the checkpoint; or timm, torchvision or huggingface: their weights')
    parser.add_argument(
        '--layers',
        nargs='*',
        metavar='NAME',
        help='layers to probe; without names every block (default: what the head takes)',
    )
    parser.add_argument('--neighbours', type=int, default=20, help='neighbours that vote (default: 20)')
    parser.add_argument('--c', type=float, default=1.0, help='inverse of the linear L2 penalty (default: 1)')
    parser.add_argument('--batch-size', type=int, default=32, help='images at a time (default: 32)')
    parser.add_argument(
        '--out', type=Path, help='folder of the features and scores (default: work_dirs/<config>/probe)'
    )
    parser.add_argument(
        '--cfg-options', nargs='+', action=ConfigOptions, help='settings that override the config, as key=value'
    )
    add_trust_argument(parser)
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('probe:probe', parse_args())
