"""Draw test images, one row per config: ``python tools/analysis/show_samples.py CONFIG ... --out FILE``."""

import argparse
from pathlib import Path

from vt.commands.arguments import ToolParser, run


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Draw test images of classification data sets, one row per config.',
        'python tools/analysis/show_samples.py configs/vt_resnet/vt-resnet18_digits.py --out samples.jpg',
    )
    parser.add_argument('configs', nargs='+', metavar='CONFIG', help='paths of the configs')
    parser.add_argument('--out', type=Path, required=True, help='file to write, such as samples.jpg')
    parser.add_argument(
        '--images', type=int, default=8, help='number of images per row, spread over the classes (default: 8)'
    )
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    run('show_samples:show_samples', parse_args())
