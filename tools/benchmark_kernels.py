"""What the Triton kernels take of a GPU that need not be here, or their time on one that is.

``python tools/benchmark_kernels.py [--time]``
"""

import argparse
from pathlib import Path


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Compile every Triton kernel for several GPUs, of which none need be here; or time it on this one.'
    )
    parser.add_argument('--time', action='store_true', help='time the kernels, and what could compute in their place')
    parser.add_argument('--out', help='write the figures to this JSON file')
    parser.add_argument('--page', type=Path, help='Markdown page whose marked place takes the table')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    args = parse_args()
    run('benchmarks:time_kernels' if args.time else 'benchmarks:benchmark_kernels', args)
