"""Draw test images of data sets, a row a config: ``python tools/analysis/show_samples.py CONFIG ... --out FILE``."""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Draw a few test images of classification data sets, a row a config.')
    parser.add_argument('configs', nargs='+', metavar='CONFIG', help='paths of the configs')
    parser.add_argument('--out', type=Path, required=True, help='file to write, such as samples.jpg')
    parser.add_argument('--images', type=int, default=8, help='images of each, spread over the classes')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('show_samples:show_samples', parse_args())
