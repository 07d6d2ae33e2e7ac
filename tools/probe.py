"""Train a linear probe on a frozen model's features: ``vt probe CONFIG CHECKPOINT``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        "Score a frozen model's features by a linear probe and by nearest neighbours.",
        'vt probe vt-resnet18_digits work_dirs/vt-resnet18_digits/epoch_15.pth --layers',
    )
    parser.add_model_arguments()
    settings = parser.add_argument_group('settings')
    settings.add_argument(
        '--layers',
        nargs='*',
        metavar='NAME',
        help='layers to probe; without names every block (default: the input of the head)',
    )
    settings.add_argument('--neighbours', type=int, default=20, help='number of nearest neighbours (default: 20)')
    settings.add_argument('--c', type=float, default=1.0, help='inverse of the L2 penalty of the probe (default: 1)')
    settings.add_argument('--batch-size', type=int, default=32, help='images per batch (default: 32)')
    settings.add_argument(
        '--out', type=Path, help='folder for the scores, probe.json (default: work_dirs/<config name>/probe)'
    )
    parser.add_common_options()
    return parser.parse_args()


if __name__ == '__main__':
    run('probe:probe', parse_args())
