"""Products of tokens and matrices on this CPU, by each library: ``python tools/benchmark_products.py``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Time products of tokens, of matrices and of pixels, and which library is chosen.'
    )
    parser.add_argument('--seconds', type=float, default=4, help='at most about this long a row (default: 4)')
    parser.add_argument(
        '--largest', type=int, default=4096, help='no more rows, channels or pixels a side (default: 4096)'
    )
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('benchmarks:benchmark_products', parse_args())
