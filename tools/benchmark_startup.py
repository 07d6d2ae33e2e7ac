"""Time until work begins: ``python tools/benchmark_startup.py CONFIG [CONFIG ...]``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Time imports, --help, and the way to the first training iteration.')
    parser.add_argument('configs', nargs='*', help='paths of configs whose data are here; each is started and ended')
    parser.add_argument('--rounds', type=int, default=5, help='runs of each (default: 5)')
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('benchmarks:benchmark_startup', parse_args())
